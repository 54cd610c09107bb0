import { perCore } from '../core.ts'

/** Whether a visitor sees the chat, is only connected, or has left (`Presence` in messaging.proto). */
export type Presence = 'here' | 'away' | 'gone'

/** What changed for the visitors of one gateway since its last update. */
export interface PresenceUpdate {
  opened: { streamId: number; conversationId: string; workspaceId: string }[]
  ended: number[]
  reports: { conversationId: string; workspaceId: string; tab: string; isHere: boolean }[]
}

interface PresenceChange {
  conversationId: string
  workspaceId: string
  presence: Presence
}

/** Time in milliseconds after which a tab's report expires. Tabs repeat it every 2 s. */
const hereMs = 4_000
/** Time in which tabs can reconnect, before a visitor without a stream is `gone`. */
const graceMs = 2_000
/** Time without an update after which the streams of a gateway do not count. */
const silentMs = 2_000
/** Maximum time between two checks. If it is exceeded, this process was busy or stopped. */
const lateCheckMs = 1_000
const maxTabs = 50
/** Maximum number of streams, and of visitors. Further ones are not counted. */
const maxVisitors = 200_000
/** Longer ids of conversations, workspaces and tabs are ignored, because only a faulty gateway sends them. */
const maxIdLength = 64

interface VisitorState {
  workspaceId: string
  /** Number of open streams, without those of silent gateways. */
  streams: number
  endedAt: number
  /** Tabs that show the chat, by id. `at` is the time of the last report. */
  tabs: Map<string, { at: number; isLost: boolean }>
  shown: Presence
}

/**
 * Derives the presence of visitors from their streams and their tabs' reports. Every gateway sends
 * both to every core, so each core knows all visitors and nothing is stored.
 */
export const visitorPresenceOf = perCore(({ now }) => {
  const visitors = new Map<string, VisitorState>()
  /** Conversations whose presence may change without an update. */
  const pending = new Set<string>()
  const watchers = new Set<(changes: readonly PresenceChange[]) => void>()
  const sources = new Set<() => void>()
  let streamCount = 0
  let checkedAt = now()

  const areIds = (...ids: string[]) => ids.every(({ length }) => length <= maxIdLength)

  function visitorOf(conversationId: string, workspaceId: string) {
    const gone: VisitorState = { workspaceId, streams: 0, endedAt: 0, tabs: new Map(), shown: 'gone' }
    const visitor = visitors.get(conversationId) ?? gone
    visitors.set(conversationId, visitor)
    pending.add(conversationId)
    return visitor
  }

  function countStream({ conversationId, workspaceId }: PresenceUpdate['opened'][number], step: 1 | -1) {
    const visitor = visitorOf(conversationId, workspaceId)
    visitor.streams += step
    if (step > 0) return
    visitor.endedAt = now()
    const lost = [...visitor.tabs].find(([, { isLost }]) => isLost)
    if (lost) visitor.tabs.delete(lost[0])
  }

  function report({ conversationId, workspaceId, tab, isHere }: PresenceUpdate['reports'][number]) {
    if (!areIds(conversationId, workspaceId, tab)) return
    if (visitors.size >= maxVisitors && !visitors.has(conversationId)) return
    const { tabs } = visitorOf(conversationId, workspaceId)
    tabs.delete(tab)
    if (isHere) tabs.set(tab, { at: now(), isLost: false })
    if (tabs.size > maxTabs) tabs.delete(tabs.keys().next().value!)
  }

  /**
   * A tab that stops its reports without closing its stream is lost: its computer sleeps or has no
   * network. Its stream stays open until a timeout, but does not count.
   */
  function expireTabs({ tabs, streams, endedAt }: VisitorState) {
    for (const [tab, entry] of tabs) {
      if (entry.isLost || now() - entry.at < hereMs) continue
      if (streams > 0 && endedAt < entry.at) entry.isLost = true
      else tabs.delete(tab)
    }
  }

  function presenceOf(visitor: VisitorState): Presence {
    const lost = [...visitor.tabs.values()].filter(({ isLost }) => isLost).length
    if (visitor.tabs.size > lost) return 'here'
    if (visitor.streams > lost) return 'away'
    const isLeaving = visitor.streams === 0 && now() - visitor.endedAt < graceMs
    return isLeaving && visitor.shown !== 'gone' ? 'away' : 'gone'
  }

  function evaluate(changes: PresenceChange[], conversationId: string) {
    const visitor = visitors.get(conversationId)!
    expireTabs(visitor)
    const presence = presenceOf(visitor)
    if (presence !== visitor.shown) changes.push({ conversationId, workspaceId: visitor.workspaceId, presence })
    visitor.shown = presence
    const isWaiting = presence === 'here' || (presence === 'away' && visitor.streams === 0)
    if (!isWaiting) pending.delete(conversationId)
    if (presence === 'gone' && visitor.streams === 0) visitors.delete(conversationId)
  }

  return {
    addSource() {
      const streams = new Map<number, PresenceUpdate['opened'][number]>()
      let heardAt = now()
      let isSilent = false

      function setSilent(next: boolean) {
        if (next === isSilent) return
        isSilent = next
        for (const stream of streams.values()) countStream(stream, isSilent ? -1 : 1)
      }
      const listen = () => setSilent(now() - heardAt >= silentMs)
      sources.add(listen)

      return {
        update({ opened, ended, reports }: PresenceUpdate) {
          heardAt = now()
          setSilent(false)
          for (const stream of opened) {
            if (streams.has(stream.streamId) || streamCount >= maxVisitors) continue
            if (!areIds(stream.conversationId, stream.workspaceId)) continue
            streams.set(stream.streamId, stream)
            streamCount += 1
            countStream(stream, 1)
          }
          for (const streamId of ended) {
            const stream = streams.get(streamId)
            if (stream === undefined) continue
            streams.delete(streamId)
            streamCount -= 1
            countStream(stream, -1)
          }
          reports.forEach(report)
        },

        end() {
          sources.delete(listen)
          if (!isSilent) for (const stream of streams.values()) countStream(stream, -1)
          streamCount -= streams.size
          streams.clear()
        },
      }
    },

    of: (conversationId: string) => visitors.get(conversationId)?.shown ?? 'gone',

    /**
     * Calls `changed` at once with every visitor who is not `gone`, then with each change of presence,
     * until the returned function is called. Without a `workspaceId`, covers all workspaces.
     */
    watch(
      workspaceId: string | undefined,
      changed: (changes: PresenceChange[], isComplete: boolean) => void,
    ): () => void {
      const isTheirs = (visitor: Pick<PresenceChange, 'workspaceId'>) =>
        workspaceId === undefined || visitor.workspaceId === workspaceId
      const present = [...visitors]
        .filter(([, visitor]) => visitor.shown !== 'gone' && isTheirs(visitor))
        .map(([conversationId, { workspaceId, shown }]) => ({ conversationId, workspaceId, presence: shown }))
      changed(present, true)
      const watcher = (changes: readonly PresenceChange[]) => {
        const own = changes.filter(isTheirs)
        if (own.length > 0) changed(own, false)
      }
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },

    async check() {
      const isLate = now() - checkedAt > lateCheckMs
      checkedAt = now()
      // This process may not have read the updates that arrived while it was busy.
      if (isLate) return
      for (const listen of sources) listen()
      const changes: PresenceChange[] = []
      for (const conversationId of pending) evaluate(changes, conversationId)
      if (changes.length > 0) for (const watcher of watchers) watcher(changes)
    },
  }
})
