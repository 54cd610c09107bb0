import { signal } from '@preact/signals'

export type Announcer = ReturnType<typeof createAnnouncer>

/** Holds the text of a polite live region, which screen readers announce. */
export function createAnnouncer() {
  const text = signal('')
  return {
    text,
    say(next: string) {
      // Screen readers do not announce an unchanged text, so a repeated text gets a trailing space.
      text.value = text.value === next ? `${next}\u00a0` : next
    },
  }
}
