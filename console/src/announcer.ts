import { type ReadonlySignal, signal } from '@preact/signals'

/** Texts for screen readers, in a polite live region. */
export interface Announcer {
  text: ReadonlySignal<string>
  say(text: string): void
}

export function createAnnouncer(): Announcer {
  const text = signal('')
  return {
    text,
    say(next) {
      // A repeated text must differ, or screen readers do not read it again.
      text.value = text.value === next ? `${next}\u00a0` : next
    },
  }
}
