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
 * What happens to the page: the network came or went, the page was shown or hidden, left or frozen (`pagehide`), or brought
 * back (`pageshow`).
 */
export type LifecycleSignal = 'online' | 'offline' | 'visible' | 'hidden' | 'pagehide' | 'pageshow'

export interface Lifecycle {
  subscribe(listener: (signal: LifecycleSignal) => void): () => void
  /** False only where the browser is sure that there is no network. */
  isOnline(): boolean
  /** Left out, the page is always visible. */
  isHidden?(): boolean
}

/** The tabs of this browser whose pages have the same origin. They share slots, each held by one tab at a time. */
export interface Tabs {
  /** Whether requests to the service share one connection, as in HTTP/2. False until the first answer tells. */
  isMultiplexed(): boolean
  /**
   * Waits for one of `count` slots of this name. `onLost` is called when another tab steals it. Undefined where the browser
   * has no locks; where the page may not use them, `onGranted` is called without a slot.
   */
  waitForSlot(name: string, count: number, onGranted: () => void, onLost: () => void): TabSlot | undefined
}

/** A slot that is waited for or held. */
export interface TabSlot {
  /** Whether a tab waits for a slot of this name. */
  isWanted(): Promise<boolean>
  /** Takes a slot away from its holder. */
  steal(): void
  /** Gives the slot back, or stops waiting for it. */
  release(): void
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
  /** Left out, each tab has a stream of its own, hidden tabs too. */
  tabs?: Tabs
  storage: KeyValueStorage
  /** A `fetch` that reports the sent share of the body, from 0 to 1. If left out, `fetch` is used and progress is not reported. */
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
