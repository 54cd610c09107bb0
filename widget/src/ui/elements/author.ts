import { initialsOf } from '../../../../browser/chat/initials.ts'
import type { MessageAuthor } from '../../vocabulary/types.ts'
import type { WidgetTexts } from '../languages/en.ts'
import { element } from './elements.ts'

/** Returns the picture that covers the initials of an avatar until loading fails; none without a web URL. */
export function picture(address: string | undefined): HTMLImageElement[] {
  if (!address?.startsWith('http')) return []
  const image = element('img', { referrerpolicy: 'no-referrer', decoding: 'async', alt: '', src: address })
  image.addEventListener('error', () => image.remove())
  return [image]
}

/** Creates the avatar of an author. `otherwise` is the name of an author without one. */
export function avatarOf({ kind, displayName, avatarUrl }: MessageAuthor, otherwise: string): HTMLElement {
  const attributes = { class: 'avatar', 'aria-hidden': 'true', 'data-bot': kind === 'bot' }
  return element('span', attributes, initialsOf(displayName || otherwise), ...picture(avatarUrl))
}

/** Returns the name of an author. That of a bot says in words that it is one. */
export function authorName({ kind, displayName }: MessageAuthor, texts: WidgetTexts): string {
  if (kind === 'bot') return displayName ? `${displayName} · ${texts.assistant}` : texts.assistant
  return displayName || (kind === 'visitor' ? texts.you : texts.agent)
}
