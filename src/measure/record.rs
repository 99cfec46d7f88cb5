//! Where samples go.

/// Takes samples between the chunks of a run.
pub trait Record<S> {
    /// Where the next samples go, from the front. No room at all ends the run.
    fn room(&mut self) -> &mut [S];

    /// So many samples were put there.
    fn taken(&mut self, count: usize);
}

/// Fills memory that somebody else keeps, from the front.
impl<S> Record<S> for &mut [S] {
    fn room(&mut self) -> &mut [S] {
        self
    }

    fn taken(&mut self, count: usize) {
        *self = &mut std::mem::take(self)[count..];
    }
}
