import { element } from './elements.ts'

export type Announcer = ReturnType<typeof createAnnouncer>

/**
 * Tells a screen reader of messages that come while the panel is closed, in the open one the conversation itself does, and at
 * any time of what stands outside the conversation. It is emptied when the panel opens, so that nobody finds a message twice.
 */
export function createAnnouncer() {
  const region = element('div', { class: 'visually-hidden', role: 'status', 'aria-live': 'polite' })
  return {
    element: region,
    announce(text: string) {
      // One element each: two equal texts in a row are two announcements.
      region.append(element('p', {}, text))
      while (region.childElementCount > 3) region.firstElementChild!.remove()
    },
    clear: () => region.replaceChildren(),
  }
}
