import { element } from '../elements/elements.ts'

export type Announcer = ReturnType<typeof createAnnouncer>

/** Announces texts while the panel is closed. An open panel announces its messages itself. */
export function createAnnouncer() {
  const region = element('div', { class: 'visually-hidden', role: 'status', 'aria-live': 'polite' })
  return {
    element: region,
    announce(text: string) {
      // A separate element each, so that a repeated text is announced, too.
      region.append(element('p', {}, text))
      while (region.childElementCount > 3) region.firstElementChild!.remove()
    },
    clear: () => region.replaceChildren(),
  }
}
