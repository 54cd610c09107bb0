import { element } from '../elements/elements.ts'

export type Announcer = ReturnType<typeof createAnnouncer>

/**
 * Announces texts to screen readers, for example new messages while the panel is closed. An open
 * panel announces its messages itself, so the announcer's texts are removed when the panel opens.
 */
export function createAnnouncer() {
  const region = element('div', { class: 'visually-hidden', role: 'status', 'aria-live': 'polite' })
  return {
    element: region,
    announce(text: string) {
      // Each text is a separate element, so that screen readers also announce a text that is
      // repeated.
      region.append(element('p', {}, text))
      while (region.childElementCount > 3) region.firstElementChild!.remove()
    },
    clear: () => region.replaceChildren(),
  }
}
