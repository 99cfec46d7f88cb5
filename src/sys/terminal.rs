//! The size of a terminal.

use std::os::fd::{AsFd, AsRawFd};

mod ioctl {
    nix::ioctl_read_bad!(window_size, libc::TIOCGWINSZ, libc::winsize);
}

/// Columns of the terminal that is open there; `None` where there is none, or where it does not know.
pub fn columns(of: impl AsFd) -> Option<u16> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the ioctl writes a winsize, which is live.
    unsafe { ioctl::window_size(of.as_fd().as_raw_fd(), &mut size) }.ok()?;
    Some(size.ws_col).filter(|&columns| columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_is_no_terminal_has_no_columns() {
        assert_eq!(columns(File::open("/dev/null").unwrap()), None);
    }
}
