//! What the frames are called, and which step each belongs to.

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The magic and protocol number, before any frame; both ways.
    Opening,
    /// Client: who it is and what it asks for.
    Hello,
    /// Server: what it grants.
    Welcome,
    /// Both: what the other needs to connect its queue pair.
    Endpoint,
    /// Both: the queue pair is connected.
    Ready,
    /// Client: what it will measure.
    Plan,
    /// Client: the heartbeat of a run.
    Progress,
    /// Client: what it measured.
    Summary,
    /// Server: what it says to that, for example whether the bytes are right.
    Verdict,
}

impl Kind {
    /// The key in the frame, and the word in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Hello => "hello",
            Self::Welcome => "welcome",
            Self::Endpoint => "endpoint",
            Self::Ready => "ready",
            Self::Plan => "plan",
            Self::Progress => "progress",
            Self::Summary => "summary",
            Self::Verdict => "verdict",
        }
    }

    /// The step that the frame belongs to.
    pub fn step(self) -> &'static str {
        match self {
            Self::Opening => "open",
            Self::Hello | Self::Welcome => "greet",
            Self::Endpoint => "exchange",
            Self::Ready => "ready",
            Self::Plan | Self::Progress => "run",
            Self::Summary | Self::Verdict => "done",
        }
    }
}

/// Where in the conversation something went wrong: the step, and what was due there. Nothing is due at a client that
/// measures.
pub(super) fn place(due: &[Kind]) -> String {
    let names: Vec<_> = due.iter().map(|kind| kind.name()).collect();
    match due.first() {
        Some(first) => format!(" in step {}, where its {} was due", first.step(), names.join(" or ")),
        None => " in step run".into(),
    }
}
