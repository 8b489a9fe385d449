//! A transport of the host's: a vtable of C functions.

use super::transport::{
    Capabilities, CommOperation, DeviceCapabilities, FIRST_OWN_TAG, MESSAGE_BYTES, Message, Token, Transport,
    TransportFailure, TransportInfo,
};
use crate::abi::{
    weir_comm_flags as Flag, weir_comm_op_value as Op, weir_comm_operation, weir_comm_transport_info, weir_comm_vtable,
    weir_status,
};
use crate::base::{Code, Error, Result};
use crate::device::{DeviceKind, DeviceStream};
use crate::sync::ambient;
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const MOST_RANKS: i32 = 1 << 16;
const TEXT: usize = 256;
/// A message holds an element of any type.
const LEAST_MESSAGE: u64 = 64;

pub struct HostTransport {
    vtable: weir_comm_vtable,
    ctx: *mut c_void,
    info: TransportInfo,
    /// Whether `release` is to be called for `ctx`.
    is_owner: Arc<AtomicBool>,
}

// SAFETY: the host's functions may be called in any thread, in one at a time (`Transport`), or in the one thread that
// the flags demand, to which the communicator keeps.
unsafe impl Send for HostTransport {}
// SAFETY: as above.
unsafe impl Sync for HostTransport {}

fn text_of(text: &[c_char]) -> String {
    let bytes: Vec<u8> = text.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn out_of_range(what: &str, value: impl std::fmt::Display, expected: &str) -> Error {
    Error::out_of_range(format!("get_info: {what} is {value}, expected {expected}"))
}

/// The operations of enqueue, checked.
fn device_capabilities(raw: &weir_comm_transport_info) -> Result<DeviceCapabilities> {
    let kind = DeviceKind::from_value(raw.engine_kind).map_err(|_| {
        Error::invalid(format!("get_info: engine_kind is {}, which is no kind of engines", raw.engine_kind))
    })?;
    if kind == DeviceKind::CPU {
        return Err(Error::invalid("get_info: engine_kind is WEIR_ENGINE_CPU, and vtable->enqueue is for a device"));
    }
    if raw.flags & Flag::WEIR_COMM_ONE_THREAD as u64 != 0 {
        return Err(Error::invalid("get_info: flags has WEIR_COMM_ONE_THREAD, and vtable->enqueue any thread"));
    }
    let index = u32::try_from(raw.engine_index);
    let index = index.map_err(|_| out_of_range("engine_index", raw.engine_index, "0 or more"))?;
    let capabilities =
        Capabilities { ops: raw.device_ops, dtypes: raw.device_dtypes, reductions: raw.device_reductions };
    Ok(DeviceCapabilities { kind, index, capabilities })
}

impl HostTransport {
    /// # Safety
    /// The functions are as their documentation says, and `ctx` is theirs.
    pub unsafe fn new(vtable: weir_comm_vtable, ctx: *mut c_void) -> Result<HostTransport> {
        let get_info = vtable.get_info.ok_or_else(|| Error::null("vtable->get_info"))?;
        let is_for_host = vtable.start.is_some() || vtable.test.is_some() || vtable.enqueue.is_none();
        if is_for_host && vtable.start.is_none() {
            return Err(Error::null("vtable->start"));
        }
        if is_for_host && vtable.test.is_none() {
            return Err(Error::null("vtable->test"));
        }
        let mut raw = weir_comm_transport_info {
            struct_size: size_of::<weir_comm_transport_info>(),
            rank: -1,
            size: 0,
            flags: 0,
            ops: 0,
            dtypes: 0,
            reductions: 0,
            max_tag: 0,
            reserved: 0,
            max_bytes: 0,
            name: [0; 64],
            engine_kind: 0,
            engine_index: 0,
            device_ops: 0,
            device_dtypes: 0,
            device_reductions: 0,
        };
        // SAFETY: the host's function, and a struct that it may fill.
        let status = ambient::call(|| unsafe { get_info(ctx, &mut raw) });
        if status != 0 {
            return Err(Error::from_status(status, "get_info"));
        }
        if !(1..=MOST_RANKS).contains(&raw.size) {
            return Err(out_of_range("size", raw.size, "1 to 65536"));
        }
        if !(0..raw.size).contains(&raw.rank) {
            return Err(out_of_range("rank", raw.rank, &format!("0 to {}", raw.size - 1)));
        }
        if raw.flags >> 4 != 0 {
            return Err(Error::invalid(format!("get_info: flags is {:#x}, which has unknown bits", raw.flags)));
        }
        let needed = 1 << Op::WEIR_COMM_SEND as u32 | 1 << Op::WEIR_COMM_RECV as u32;
        if is_for_host && raw.ops & needed != needed {
            return Err(Error::invalid(format!("get_info: ops is {:#x}, without SEND and RECV", raw.ops)));
        }
        if !is_for_host && raw.ops != 0 {
            return Err(Error::invalid(format!("get_info: ops is {:#x}, and vtable->start is NULL", raw.ops)));
        }
        if is_for_host && raw.max_tag <= FIRST_OWN_TAG {
            return Err(out_of_range("max_tag", raw.max_tag, "32767 or more"));
        }
        let on_device = vtable.enqueue.map(|_| device_capabilities(&raw)).transpose()?;
        if (1..LEAST_MESSAGE).contains(&raw.max_bytes) {
            return Err(out_of_range("max_bytes", raw.max_bytes, "0, or 64 or more"));
        }
        let info = TransportInfo {
            rank: raw.rank as usize,
            size: raw.size as usize,
            flags: raw.flags,
            on_host: Capabilities { ops: raw.ops, dtypes: raw.dtypes, reductions: raw.reductions },
            on_device,
            max_tag: raw.max_tag,
            max_bytes: if raw.max_bytes == 0 { u64::MAX } else { raw.max_bytes },
            name: text_of(&raw.name),
            has_control: vtable.control_send.is_some() && vtable.control_poll.is_some(),
            can_recover: vtable.recover.is_some(),
        };
        Ok(HostTransport { vtable, ctx, info, is_owner: Arc::default() })
    }

    /// Whether `ctx` is released with it; not yet.
    pub fn owned(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_owner)
    }

    /// A failure with the transport's own words.
    fn failure(&self, status: weir_status, what: &str) -> TransportFailure {
        let code = Code::from_status(status).unwrap_or(Code::Unknown);
        let (mut rank, mut text) = (-1, [0 as c_char; TEXT]);
        if let Some(last_error) = self.vtable.last_error {
            // SAFETY: the host's function, and memory of the size that it is told.
            ambient::call(|| unsafe { last_error(self.ctx, &mut rank, text.as_mut_ptr(), TEXT) });
        }
        text[TEXT - 1] = 0;
        let said = text_of(&text);
        let said =
            if said.is_empty() { format!("{what} returned {}", Code::name_of(status).to_string_lossy()) } else { said };
        TransportFailure {
            error: Error::new(code, said),
            rank: usize::try_from(rank).ok().filter(|rank| *rank < self.info.size),
        }
    }

    fn check(&self, status: weir_status, what: &str) -> Result<(), TransportFailure> {
        if status == 0 { Ok(()) } else { Err(self.failure(status, what)) }
    }

    /// The transport behind a context that the host has made.
    fn made(&self, status: weir_status, ctx: *mut c_void, what: &str) -> Result<Option<Arc<dyn Transport>>> {
        if status != 0 {
            let failure = self.failure(status, what);
            return Err(failure.error.within(format_args!("{what}")));
        }
        if ctx.is_null() {
            return Ok(None);
        }
        // SAFETY: the same functions, with a context that they have made.
        let transport = unsafe { HostTransport::new(self.vtable, ctx)? };
        transport.is_owner.store(true, Relaxed);
        Ok(Some(Arc::new(transport)))
    }
}

fn missing(what: &str) -> Error {
    Error::new(Code::Unimplemented, format!("the transport has no {what}"))
}

impl Transport for HostTransport {
    fn info(&self) -> &TransportInfo {
        &self.info
    }

    fn start(&self, operation: &CommOperation) -> Result<Token, TransportFailure> {
        let Some(start) = self.vtable.start else { return Err(TransportFailure::new(Code::Internal, "no start")) };
        let send = operation.send.as_ref().map_or(std::ptr::null_mut(), |part| part.block.at(&part.bytes));
        let recv = operation.recv.as_ref().map_or(std::ptr::null_mut(), |part| part.block.at(&part.bytes));
        let raw = operation.raw(send.cast_const().cast(), recv.cast());
        let mut request = std::ptr::null_mut();
        // SAFETY: the host's function; the operation's memory stays, as `Transport` demands of the caller.
        let status = ambient::call(|| unsafe { start(self.ctx, &raw, &mut request) });
        self.check(status, "start")?;
        Ok(Token(request.expose_provenance()))
    }

    fn test(&self, token: Token) -> Result<bool, TransportFailure> {
        let Some(test) = self.vtable.test else { return Ok(true) };
        let mut done = 0;
        // SAFETY: the host's function, with what its `start` has stored.
        let status =
            ambient::call(|| unsafe { test(self.ctx, std::ptr::with_exposed_provenance_mut(token.0), &mut done) });
        self.check(status, "test")?;
        Ok(done != 0)
    }

    fn enqueue(&self, operations: &[weir_comm_operation], stream: &dyn DeviceStream) -> Result<(), TransportFailure> {
        let Some(enqueue) = self.vtable.enqueue else {
            return Err(TransportFailure::new(Code::Internal, "no enqueue"));
        };
        let handle = stream.native_handle().map_err(|error| TransportFailure { error, rank: None })?;
        // SAFETY: the host's function; the device's memory stays until the stream is done with it, as `Issuer` demands
        // of the caller.
        let status = ambient::call(|| unsafe { enqueue(self.ctx, operations.as_ptr(), operations.len(), handle) });
        self.check(status, "enqueue")
    }

    fn progress(&self) -> Result<(), TransportFailure> {
        let Some(progress) = self.vtable.progress else { return Ok(()) };
        // SAFETY: the host's function.
        let status = ambient::call(|| unsafe { progress(self.ctx) });
        self.check(status, "progress")
    }

    fn control_send(&self, peer: usize, message: &Message) -> Result<(), TransportFailure> {
        let Some(send) = self.vtable.control_send.filter(|_| self.info.has_control) else { return Ok(()) };
        // SAFETY: the host's function, and a message of the size that it knows.
        let status = ambient::call(|| unsafe { send(self.ctx, peer as i32, message.as_ptr().cast()) });
        self.check(status, "control_send")
    }

    fn control_poll(&self) -> Result<Option<(usize, Message)>, TransportFailure> {
        let Some(poll) = self.vtable.control_poll.filter(|_| self.info.has_control) else { return Ok(None) };
        let (mut peer, mut got, mut message) = (-1, 0, [0; MESSAGE_BYTES]);
        // SAFETY: as above.
        let status =
            ambient::call(|| unsafe { poll(self.ctx, &mut peer, message.as_mut_ptr().cast::<c_void>(), &mut got) });
        self.check(status, "control_poll")?;
        if got == 0 {
            return Ok(None);
        }
        match usize::try_from(peer).ok().filter(|peer| *peer < self.info.size) {
            Some(peer) => Ok(Some((peer, message))),
            None => Err(TransportFailure::new(Code::Internal, format!("control_poll: peer is {peer}"))),
        }
    }

    fn abort(&self) {
        if let Some(abort) = self.vtable.abort {
            // SAFETY: the host's function.
            ambient::call(|| unsafe { abort(self.ctx) });
        }
    }

    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        let duplicate = self.vtable.duplicate.ok_or_else(|| missing("duplicate"))?;
        let mut ctx = std::ptr::null_mut();
        // SAFETY: the host's function.
        let status = ambient::call(|| unsafe { duplicate(self.ctx, &mut ctx) });
        self.made(status, ctx, "duplicate")?.ok_or_else(|| Error::internal("duplicate has made nothing"))
    }

    fn split(&self, color: i32, key: i32) -> Result<Option<Arc<dyn Transport>>> {
        let split = self.vtable.split.ok_or_else(|| missing("split"))?;
        let mut ctx = std::ptr::null_mut();
        // SAFETY: the host's function.
        let status = ambient::call(|| unsafe { split(self.ctx, color, key, &mut ctx) });
        self.made(status, ctx, "split")
    }

    fn recover(&self) -> Result<Arc<dyn Transport>> {
        let recover = self.vtable.recover.ok_or_else(|| missing("recover"))?;
        let mut ctx = std::ptr::null_mut();
        // SAFETY: the host's function.
        let status = ambient::call(|| unsafe { recover(self.ctx, &mut ctx) });
        self.made(status, ctx, "recover")?.ok_or_else(|| Error::internal("recover has made nothing"))
    }
}

impl Drop for HostTransport {
    fn drop(&mut self) {
        if let Some(release) = self.vtable.release.filter(|_| self.is_owner.load(Relaxed)) {
            // SAFETY: the host's function, called once.
            ambient::call(|| unsafe { release(self.ctx) });
        }
    }
}
