//! The transport below a communicator.
#![forbid(unsafe_code)]

use super::staging::Staging;
use crate::abi::{weir_comm_op_value as Op, weir_comm_operation, weir_comm_reduction_value as Reduction};
use crate::base::{Code, Error, Result};
use crate::device::{DeviceKind, DeviceStream};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

/// Tags of the host's operations are below it; those of weir's own messages begin with it.
pub const FIRST_OWN_TAG: i32 = 1 << 14;
pub const MESSAGE_BYTES: usize = crate::abi::WEIR_COMM_MESSAGE_BYTES;

/// A control message.
pub type Message = [u8; MESSAGE_BYTES];

/// The operations, types and reductions of a transport, by bit of `weir_comm_op_value`, `weir_dtype` and `weir_comm_reduction_value`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capabilities {
    pub ops: u64,
    pub dtypes: u64,
    pub reductions: u64,
}

impl Capabilities {
    pub fn takes(&self, op: Op) -> bool {
        self.ops >> op as u32 & 1 != 0
    }

    pub fn reduces(&self, dtype: u32, reduction: Reduction) -> bool {
        self.dtypes.checked_shr(dtype).is_some_and(|bits| bits & 1 != 0) && self.reductions >> reduction as u32 & 1 != 0
    }
}

/// The same in the memory of a device, in the order of its streams.
#[derive(Clone, Copy, Debug)]
pub struct DeviceCapabilities {
    pub kind: DeviceKind,
    pub index: u32,
    pub capabilities: Capabilities,
}

/// Properties of a transport, checked.
#[derive(Clone, Debug)]
pub struct TransportInfo {
    pub rank: usize,
    pub size: usize,
    /// `weir_comm_flags`.
    pub flags: u64,
    /// In the host's memory; without operations it does none there.
    pub on_host: Capabilities,
    pub on_device: Option<DeviceCapabilities>,
    pub max_tag: i32,
    /// `u64::MAX` = no limit.
    pub max_bytes: u64,
    pub name: String,
    /// Whether ranks can tell one another what became of their runs.
    pub has_control: bool,
    pub can_recover: bool,
}

impl TransportInfo {
    pub fn has(&self, flag: crate::abi::weir_comm_flags) -> bool {
        self.flags & flag as u64 != 0
    }

    pub fn takes(&self, op: Op) -> bool {
        self.on_host.takes(op)
    }

    pub fn reduces(&self, dtype: u32, reduction: Reduction) -> bool {
        self.on_host.reduces(dtype, reduction)
    }
}

/// A range of a block's bytes.
#[derive(Clone, Debug)]
pub struct Part {
    pub block: Arc<Staging>,
    pub bytes: Range<usize>,
}

/// One operation, with its memory.
#[derive(Clone, Debug)]
pub struct CommOperation {
    pub op: Op,
    pub reduction: Option<Reduction>,
    pub dtype: u32,
    pub element_bytes: usize,
    pub peer: usize,
    pub tag: i32,
    pub count: u64,
    /// `None` where nothing is sent, or received, by this rank.
    pub send: Option<Part>,
    pub recv: Option<Part>,
}

impl CommOperation {
    /// As the host's functions take it, with these addresses.
    pub fn raw(&self, send: *const c_void, recv: *mut c_void) -> weir_comm_operation {
        weir_comm_operation {
            struct_size: size_of::<weir_comm_operation>(),
            op: self.op as u32,
            reduction: self.reduction.map_or(0, |reduction| reduction as u32),
            dtype: self.dtype,
            peer: self.peer as i32,
            tag: self.tag,
            reserved: 0,
            count: self.count,
            element_bytes: self.element_bytes,
            send,
            recv,
        }
    }
}

/// A failure of a transport, and the rank that it is about.
#[derive(Clone, Debug)]
pub struct TransportFailure {
    pub error: Error,
    pub rank: Option<usize>,
}

impl TransportFailure {
    pub fn new(code: Code, text: impl Into<String>) -> TransportFailure {
        TransportFailure { error: Error::new(code, text), rank: None }
    }
}

/// An operation that was started, in the transport's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub usize);

/// Moves bytes between ranks. Called by one thread at a time. The caller keeps the parts of an operation until `test`
/// has said that it is over, or until the transport is gone.
pub trait Transport: Send + Sync {
    fn info(&self) -> &TransportInfo;

    fn start(&self, operation: &CommOperation) -> Result<Token, TransportFailure>;

    /// Whether it is over. After `true` and after a failure the token is gone.
    fn test(&self, token: Token) -> Result<bool, TransportFailure>;

    /// Submits operations on a device's memory, as one, to a stream of it. After `abort` the stream goes on.
    fn enqueue(&self, _operations: &[weir_comm_operation], _stream: &dyn DeviceStream) -> Result<(), TransportFailure> {
        Err(TransportFailure::new(Code::Unimplemented, "the transport takes no memory of devices"))
    }

    /// Moves what has been started, besides `test`.
    fn progress(&self) -> Result<(), TransportFailure> {
        Ok(())
    }

    /// Without `has_control` it does nothing.
    fn control_send(&self, peer: usize, message: &Message) -> Result<(), TransportFailure>;

    fn control_poll(&self) -> Result<Option<(usize, Message)>, TransportFailure>;

    /// Gives up what is open.
    fn abort(&self);

    fn duplicate(&self) -> Result<Arc<dyn Transport>>;

    /// `None` for a color below 0.
    fn split(&self, color: i32, key: i32) -> Result<Option<Arc<dyn Transport>>>;

    fn recover(&self) -> Result<Arc<dyn Transport>>;
}
