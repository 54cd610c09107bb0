import type { KeyValueStorage } from '../../../../browser/storage.ts'
import type { ServiceClient } from '../../client/client.ts'
import type { StoredMessage } from '../../client/types.ts'
import { authorName } from '../languages/author-name.ts'
import type { WidgetTexts } from '../languages/en.ts'
import type { AnswerCard } from '../outside/answer-card.ts'
import type { LoadPart } from '../parts.ts'
import type { Announcer } from './announcer.ts'
import type { Shell } from './shell.ts'

interface AnswersDeps {
  client: ServiceClient
  loadPart: LoadPart
  texts(): WidgetTexts
  isOpen(): boolean
  mounted(): { shell: Shell; announcer: Announcer } | undefined
  storage: KeyValueStorage
  siteKey: string
  onOpen(): void
}

/** While the panel is closed, announces new messages and shows the newest one beside the launcher. */
export function followAnswers({ client, loadPart, texts, isOpen, mounted, ...deps }: AnswersDeps) {
  let card: AnswerCard | undefined

  client.on('message.received', ({ message }) => {
    const { author, body } = message
    if (isOpen()) return
    mounted()?.announcer.announce(`${authorName(author, texts())}: ${body}`)
    void show(message)
  })
  client.on('message.redacted', ({ message }) => card?.clear(message.messageId))
  // The visitor has read the answers, perhaps in another tab.
  client.on('unread.changed', ({ count }) => count === 0 && card?.clear())

  return {
    clear: () => card?.clear(),

    dispose() {
      card?.dispose()
      card = undefined
    },
  }

  async function show(message: StoredMessage) {
    const part = await loadPart('answer').catch(() => undefined)
    const { shell } = mounted() ?? {}
    if (!part || !shell || isOpen() || shell.button.hidden || client.unread() === 0) return
    shell.addStyles(part.answerStyles)
    card ??= part.createAnswerCard({ frame: shell.frame, button: shell.button, ...deps })
    card.show(message, client.unread(), texts())
  }
}
