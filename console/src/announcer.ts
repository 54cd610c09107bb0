import { type ReadonlySignal, signal } from '@preact/signals'

/** What screen readers are told, politely. */
export interface Announcer {
  text: ReadonlySignal<string>
  say(text: string): void
}

export function createAnnouncer(): Announcer {
  const text = signal('')
  return {
    text,
    say(next) {
      // The same text twice is a change too.
      text.value = text.value === next ? `${next}\u00a0` : next
    },
  }
}
