import { createPause } from '../../../browser/pause.ts'
import type { Platform } from '../../../browser/platform.ts'
import type { HistoryRange } from '../transport/api.ts'
import { retrying } from '../transport/retrying.ts'
import type { HistoryPage, ServiceMessage } from '../vocabulary/gen/wire.ts'
import type { MessageList } from './message-list.ts'

const pageSize = 50
const fillPagesAtMost = 20
/** Larger than every sequence number, but still a 32-bit integer. */
const beyondNewest = 2 ** 31 - 1

interface HistoryDeps {
  platform: Pick<Platform, 'clock' | 'random'>
  fetchPage(range: HistoryRange): Promise<HistoryPage>
  messages: MessageList
  /** `missed`: the stream should have delivered the message. */
  onMessage(message: ServiceMessage, missed: boolean): void
  /** Called after `onMessage` was called with all messages of a page. */
  onPage(): void
}

/** Loads the newest page, older pages on request, and what the stream did not deliver. */
export function createHistory({ platform, fetchPage, messages, onMessage, onPage }: HistoryDeps) {
  const pause = createPause(platform.clock)
  let hasOlder = false
  let older: Promise<void> | undefined
  let stopped = false

  return {
    hasOlder: () => hasOlder,

    /** Loads the newest page. Retries temporary failures. */
    async loadNewest(): Promise<void> {
      await retrying(this.reload, { pause, random: platform.random, isEnough: () => stopped })
    },

    /** Loads the page before the oldest loaded message. Concurrent calls share one request. */
    async loadOlder(): Promise<void> {
      const oldest = messages.all().find(({ sequence }) => sequence)?.sequence
      if (!hasOlder || !oldest) return
      older ??= fetchPage({ beforeSequence: oldest, limit: pageSize })
        .then((page) => {
          hasOlder = page.hasMore
          addPage(page)
        })
        .finally(() => {
          older = undefined
        })
      await older
    },

    /** Loads the messages after a sequence. Resolves to true if one of them is new. */
    async fillFrom(sequence: number): Promise<boolean> {
      let foundNew = false
      let afterSequence = sequence
      for (let pages = 0; pages < fillPagesAtMost; pages += 1) {
        const page = await fetchPage({ afterSequence, limit: pageSize })
        foundNew ||= page.messages.some((message) => !messages.byMessageId(message.messageId))
        addPage(page, true)
        const last = page.messages.at(-1)
        if (!page.hasMore || !last) break
        afterSequence = last.sequence
      }
      return foundNew
    },

    /**
     * Loads the newest page; with `anew`, in place of the loaded messages. Resolves to where the
     * stream continues.
     */
    async reload(anew = false): Promise<number> {
      const page = await fetchPage({ beforeSequence: beyondNewest, limit: pageSize })
      if (anew) messages.keepOnly(({ messageId }) => !messageId)
      hasOlder = page.hasMore
      addPage(page)
      return page.lastSequence
    },

    stop() {
      stopped = true
      pause.end()
    },
  }

  function addPage(page: HistoryPage, missed = false) {
    if (stopped) return
    for (const message of page.messages) onMessage(message, missed)
    onPage()
  }
}
