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

/** The tabs of this browser that have the same page's origin. */
export interface Tabs {
  /**
   * Joins those that gather under a name. `onLead` is called once this tab is the only one that leads them, at once or when the
   * one before has gone. Undefined where the browser has no such thing.
   */
  join(name: string, onLead: () => void, onMessage: (message: unknown) => void): TabSeat | undefined
}

export interface TabSeat {
  /** To all the others. */
  post(message: unknown): void
  leave(): void
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
  /** Where it is missing, each tab has a stream of its own. */
  tabs?: Tabs
  storage: KeyValueStorage
  /** A `fetch` that tells how much of the body is sent, from 0 to 1. Left out, `fetch` sends it and tells nothing. */
  upload?: (onProgress: ((share: number) => void) | undefined) => typeof fetch
}

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout>),
}

/** A page that is always online and always visible: the default where there is no page. */
export const steadyLifecycle: Lifecycle = { subscribe: () => () => {}, isOnline: () => true }

/** 128 random bits, as four numbers. `crypto.randomUUID` would not do: it is missing on pages of plain http. */
export function newRandomId(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-')
}
