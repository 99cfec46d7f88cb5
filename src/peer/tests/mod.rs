//! Tests over real sockets on the loopback interface; what an address or a token may look like is tested here as well,
//! so that the files beside stay short.

mod address;
mod admission;
