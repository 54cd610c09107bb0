import type { KeyValueStorage } from './storage.ts'

export type TimerId = unknown

/** Time and timers. Tests pass their own implementation. */
export interface Clock {
  now(): number
  setTimeout(callback: () => void, ms: number): TimerId
  clearTimeout(timer: TimerId): void
}

/**
 * Changes of the page or the network. `pagehide`: the page is left or frozen. `pageshow`: the page
 * is shown again. `online` and `offline`: the network works again or is lost.
 */
export type LifecycleSignal = 'online' | 'offline' | 'visible' | 'hidden' | 'pagehide' | 'pageshow'

/** Returns true if the page or the network is back. */
export const isReturn = (signal: LifecycleSignal) => ['online', 'visible', 'pageshow'].includes(signal)

export interface Lifecycle {
  subscribe(listener: (signal: LifecycleSignal) => void): () => void
  /** Returns false only if the browser knows that it is offline. */
  isOnline(): boolean
  /** Without this function, the page counts as visible. */
  isHidden?(): boolean
}

/**
 * Coordinates the browser's tabs of one origin with slots. A slot is a lock with a name and a
 * number, for example for opening a stream. Only one tab at a time holds a slot.
 */
export interface Tabs {
  /** Returns true if requests share one connection, as in HTTP/2; false before the first answer. */
  isMultiplexed(): boolean
  /**
   * Waits for one of `count` slots of this name and calls `onGranted` when this tab gets one. Calls
   * `onLost` if another tab steals the slot. Returns undefined if the browser does not support
   * locks. If the browser forbids locks on this page, calls `onGranted` without a slot.
   */
  waitForSlot(name: string, count: number, onGranted: () => void, onLost: () => void): TabSlot | undefined
}

/** A slot that this tab holds or waits for. */
export interface TabSlot {
  /** Resolves to true if another tab waits for a slot of this name. */
  isWanted(): Promise<boolean>
  /** Takes one of the slots at once, even if another tab holds it. */
  steal(): void
  /** Releases the slot, or stops waiting for it. */
  release(): void
}

/** External dependencies of the client. By default, the functions of the browser are used. */
export interface Platform {
  fetch: typeof fetch
  clock: Clock
  /** Returns a random number from 0 to 1, exclusive. */
  random: () => number
  /** Returns a new unguessable ID of letters, digits and `-`. */
  newId: () => string
  lifecycle: Lifecycle
  /** Coordinates tabs. If undefined, each tab has its own stream, even while the tab is hidden. */
  tabs?: Tabs
  storage: KeyValueStorage
  /** Returns a `fetch` that reports the sent share of the body, from 0 to 1. Without it, no progress is reported. */
  upload?: (onProgress: ((share: number) => void) | undefined) => typeof fetch
}

/** Longest time of a browser's timer. A timer with a longer time fires at once. */
const longestTimerMs = 2 ** 31 - 1

/** Adds the missing parts of a platform. They work in and outside of browsers. */
export function createPlatform(storage: KeyValueStorage, given?: Partial<Platform>): Platform {
  const clock = given?.clock ?? systemClock
  return {
    fetch: (...request) => fetch(...request),
    random: Math.random,
    newId: newRandomId,
    lifecycle: steadyLifecycle,
    storage,
    ...given,
    clock: {
      now: () => clock.now(),
      setTimeout: (callback, ms) => clock.setTimeout(callback, Math.min(ms, longestTimerMs)),
      clearTimeout: (timer) => clock.clearTimeout(timer),
    },
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout>),
}

/** Lifecycle of a page that is always online and visible. Used outside of a browser. */
const steadyLifecycle: Lifecycle = { subscribe: () => () => {}, isOnline: () => true }

/** Returns 128 random bits as a text. `crypto.randomUUID` is missing on http pages. */
export function newRandomId() {
  return crypto.getRandomValues(new Uint32Array(4)).join('-')
}
