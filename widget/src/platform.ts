import type { KeyValueStorage } from './storage.ts'

export type TimerId = unknown

/** Time, so that tests own it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  setTimeout(callback: () => void, ms: number): TimerId
  clearTimeout(timer: TimerId): void
}

/**
 * What happens to the page: the network came or went, the page was shown again, left (it may be kept frozen for the
 * back button) or brought back.
 */
export type LifecycleSignal = 'online' | 'offline' | 'visible' | 'pagehide' | 'pageshow'

export interface Lifecycle {
  subscribe(listener: (signal: LifecycleSignal) => void): () => void
  /** False only where the browser is sure that there is no network. */
  isOnline(): boolean
}

/** Everything that comes from outside; the defaults are the browser's. */
export interface Platform {
  fetch: typeof fetch
  clock: Clock
  /** From 0 up to, not including, 1. */
  random: () => number
  /** A new unguessable id, of letters, digits and `-`. */
  newId: () => string
  lifecycle: Lifecycle
  storage: KeyValueStorage
  /** A `fetch` that tells how much of the body is sent, from 0 to 1. Left out, `fetch` sends it and tells nothing. */
  upload?: (onProgress: ((share: number) => void) | undefined) => typeof fetch
}

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => globalThis.setTimeout(callback, ms),
  clearTimeout: (timer) => globalThis.clearTimeout(timer as ReturnType<typeof setTimeout>),
}

/** A page that is always online and always visible: the default where there is no page. */
export const steadyLifecycle: Lifecycle = { subscribe: () => () => {}, isOnline: () => true }

/** A random UUID. `crypto.randomUUID` exists in secure contexts only; pages on plain http get the same from bytes. */
export function newUuid(): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
