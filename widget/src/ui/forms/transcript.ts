import type { ServiceClient } from '../../client/client.ts'
import type { WidgetMessage } from '../../vocabulary/types.ts'
import { authorName } from '../languages/author-name.ts'
import type { Dates } from '../languages/dates.ts'
import type { WidgetTexts } from '../languages/en.ts'

type HistoryClient = Pick<ServiceClient, 'messages' | 'hasOlder' | 'loadOlder'>

/**
 * Loads the whole history and returns it as a text. All lines of a message except its first are
 * indented, so that no message looks like several. Rejects if the history cannot be loaded.
 */
export async function transcriptOf(client: HistoryClient, texts: WidgetTexts, dates: Dates): Promise<string> {
  while (client.hasOlder()) {
    const loaded = client.messages().length
    await client.loadOlder()
    if (client.hasOlder() && client.messages().length === loaded) throw new Error('the history is incomplete')
  }
  const stored = client.messages().filter(({ messageId }) => messageId !== undefined)
  const lines = stored.map((message) => `[${dates.moment(message.createdAt)}] ${said(message, texts)}`)
  return `${lines.join('\n')}\n`
}

function said({ author, body, redactedAt }: WidgetMessage, texts: WidgetTexts): string {
  return `${authorName(author, texts)}: ${redactedAt ? texts.withdrawn : body.replaceAll('\n', '\n    ')}`
}
