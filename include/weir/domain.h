/* weir/domain.h: several users of the library in one process
 *
 * Generated from src/abi and src/ffi by cbindgen; do not edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef WEIR_DOMAIN_H
#define WEIR_DOMAIN_H

#include "../weir.h"

/** @file weir/domain.h
 * several users of the library in one process. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Domain -------------------------------------------------------------------------------------------------------
 * Two users of the library in one process, a framework and a plug-in of it, say, need not wait for each other nor be
 * told of each other's failures: each makes a domain, its engines in it, and waits for the domain. Engines that ask
 * for none are in the default domain. A late failure is told once by its stream, once by its engine, once by its
 * domain and once by weir_sync_devices; none of them takes it away from another. docs/waiting.md has the rules.
 */

/**
 * Creates a domain. `name` is for texts: 1 to 24 letters, digits, '.', '_' and '-'. Two users need not know of each
 * other: if another live domain has the name, this one's gets a number, as in "torch#2". weir_engine_attr_set_domain
 * puts engines into a domain.
 *
 * Errors: INVALID_ARGUMENT (NULL, or a name that is not 1 to 24 of the allowed characters); RESOURCE_EXHAUSTED
 * (memory, or 16 million domains were made).
 */
WEIR_API WEIR_NODISCARD weir_status weir_domain_create(const char *name, weir_domain **out_domain);

/** Takes one more reference. */
WEIR_API WEIR_NODISCARD weir_status weir_domain_retain(weir_domain *domain);

/** Gives up one reference. NULL does nothing. Settings and engines hold references of their own. */
WEIR_API void weir_domain_release(weir_domain *domain);

/** Copies the domain's name, which is unique among live domains. */
WEIR_API
WEIR_NODISCARD
weir_status weir_domain_get_name(const weir_domain *domain,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *out_length);

/** The domain that the engine is created in. NULL: the default domain, shared by all that set none. */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_domain(weir_engine_attr *attr, weir_domain *domain);

/** The domain that was set, or NULL. */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_get_domain(const weir_engine_attr *attr, weir_domain **out_domain);

/**
 * The engine's name in texts, instead of its device's: as in weir_domain_create, or "" for none (the default). If
 * another engine of the domain has it, this one's gets a number, as in "encoder#2". Engines without a name of their
 * own share their device's name, "cpu:0".
 */
WEIR_API WEIR_NODISCARD weir_status weir_engine_attr_set_name(weir_engine_attr *attr, const char *name);

/** Copies the name that was set, "" if none. */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_attr_get_name(const weir_engine_attr *attr,
                                      char *buffer,
                                      size_t capacity,
                                      size_t *out_length);

/**
 * Copies the engine's name as all texts print it: its own name, else its device's, after the domain's: "cpu:0",
 * "encoder", "torch/cpu:0", "torch/encoder#2". Engines of two domains never have the same name; in one domain engines
 * without a name of their own may.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_engine_get_name(const weir_engine *engine,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *out_length);

/**
 * As weir_sync_devices, for the streams of the domain's engines only. It does not wait for other domains' work. NULL:
 * the default domain. Returns the first late error of each of these engines that this call has not returned yet: the
 * code of the first, and the texts of all. Streams, engines and weir_sync_devices still report their errors, and their
 * reports take nothing away from this call.
 *
 * Work that runs of programs have submitted to these engines so far is covered, no matter which user started them; the
 * rest of such a run is covered if it was started on a stream of the domain. Work that waits for another domain's (an
 * event, a run over engines of both) is waited for with that.
 *
 * Blocking: as weir_sync_devices. Errors: those of weir_sync_devices.
 */
WEIR_API
WEIR_NODISCARD
weir_status weir_sync_domain(const weir_domain *domain,
                             uint64_t timeout_ns,
                             weir_engine_sync *results,
                             size_t capacity,
                             size_t *out_count);

/* ---- Scopes -------------------------------------------------------------------------------------------------------
 * A scope reports the late failures of a stretch of the program, whatever streams it used.
 */

/**
 * Begins a scope, as weir_async_scope_begin, for late failures on streams of the domain's engines. NULL: the default
 * domain. weir_async_scope_end waits for these streams only, and failures that it returns are not returned again by
 * weir_sync_domain.
 */
WEIR_API WEIR_NODISCARD weir_status weir_async_scope_begin_in(const weir_domain *domain, uint64_t *out_scope);

/**
 * Begins a scope: weir_async_scope_end reports the late failures from here on, on any asynchronous stream. Scopes may
 * be nested, and overlap in several threads; the first that ends reports a failure. *out_scope is a number, and
 * nothing has to be released. weir_async_scope_begin_in is for the streams of one domain.
 */
WEIR_API WEIR_NODISCARD weir_status weir_async_scope_begin(uint64_t *out_scope);

/**
 * Ends a scope. Waits for all work queued so far, then returns the first failure since the scope began that no other
 * scope and no weir_sync_devices has returned. Its text lists the others. weir_sync_devices does not return these
 * again; it still returns failures from before the scope, and domains, engines and streams report theirs all the same.
 * In a scope of weir_async_scope_begin_in the same holds for the domain's streams and weir_sync_domain. Of streams
 * that failed and were released inside of the scope the latest 64 are reported. After a time-out the scope continues,
 * and may be ended again.
 *
 * A scope's number only says since when failures count, and in which domain. So no number is refused, 0 is a scope's
 * as well, and a scope that has ended may be ended again, for the failures since.
 *
 * Blocking: until done or timeout_ns have passed. Errors: DEADLINE_EXCEEDED; FAILED_PRECONDITION as of
 * weir_sync_devices; else a late error.
 */
WEIR_API WEIR_NODISCARD weir_status weir_async_scope_end(uint64_t scope, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_DOMAIN_H */
