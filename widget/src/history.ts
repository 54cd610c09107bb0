import type { HistoryRange } from './api.ts'
import type { MessageList } from './message-list.ts'
import { createPause } from './pause.ts'
import type { Platform } from './platform.ts'
import { retrying } from './retrying.ts'
import type { HistoryPage, ServiceMessage } from './wire.ts'

const pageSize = 50
const fillPagesAtMost = 20
/** Larger than every sequence and a valid 32-bit integer: the page before it is the newest one. */
const beyondNewest = 2 ** 31 - 1

export interface HistoryDeps {
  platform: Pick<Platform, 'clock' | 'random'>
  fetchPage(range: HistoryRange): Promise<HistoryPage>
  messages: MessageList
  /** Called for each message. `missed`: the stream should have delivered it. */
  onMessage(message: ServiceMessage, missed: boolean): void
  /** Called after each page. */
  onPage(): void
}

export type History = ReturnType<typeof createHistory>

/** Loads the conversation from GET /messages, newest page first, older ones on request, and the gaps of a stream. */
export function createHistory({ platform, fetchPage, messages, onMessage, onPage }: HistoryDeps) {
  const pause = createPause(platform.clock)
  let hasOlder = false
  let older: Promise<void> | undefined
  let stopped = false

  return {
    hasOlder: () => hasOlder,

    /** Loads the newest page, trying again while the failure may pass. */
    async loadNewest(): Promise<void> {
      await retrying(this.reload, { pause, random: platform.random, isEnough: () => stopped })
    },

    /** Loads the page before the oldest message. Concurrent calls share one request. */
    async loadOlder(): Promise<void> {
      const oldest = messages.all().find(({ sequence }) => sequence)?.sequence
      if (!hasOlder || !oldest) return
      older ??= fetchPage({ beforeSequence: oldest, limit: pageSize })
        .then((page) => {
          hasOlder = page.hasMore
          take(page)
        })
        .finally(() => {
          older = undefined
        })
      await older
    },

    /** Loads the messages after a sequence. Resolves to true if any of them was new. */
    async fillFrom(sequence: number): Promise<boolean> {
      let foundNew = false
      let afterSequence = sequence
      for (let pages = 0; pages < fillPagesAtMost; pages += 1) {
        const page = await fetchPage({ afterSequence, limit: pageSize })
        foundNew ||= page.messages.some((message) => !messages.byMessageId(message.messageId))
        take(page, true)
        const last = page.messages.at(-1)
        if (!page.hasMore || !last) break
        afterSequence = last.sequence
      }
      return foundNew
    },

    /** Loads the newest page; `anew` replaces the loaded messages. Resolves to the sequence from which a stream resumes. */
    async reload(anew = false): Promise<number> {
      const page = await fetchPage({ beforeSequence: beyondNewest, limit: pageSize })
      if (anew) messages.keepOnly(({ messageId }) => !messageId)
      hasOlder = page.hasMore
      take(page)
      return page.lastSequence
    },

    stop() {
      stopped = true
      pause.end()
    },
  }

  function take(page: HistoryPage, missed = false) {
    if (stopped) return
    for (const message of page.messages) onMessage(message, missed)
    onPage()
  }
}
