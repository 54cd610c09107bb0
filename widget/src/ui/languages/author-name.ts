import type { MessageAuthor } from '../../vocabulary/types.ts'
import type { WidgetTexts } from './en.ts'

/** Returns the name of an author. That of a bot says in words that it is one. */
export function authorName({ kind, displayName }: MessageAuthor, texts: WidgetTexts): string {
  if (kind === 'bot') return displayName ? `${displayName} · ${texts.assistant}` : texts.assistant
  return displayName || (kind === 'visitor' ? texts.you : texts.agent)
}
