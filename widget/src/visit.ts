import type { Api } from './api.ts'
import { createConversation } from './conversation.ts'
import { toWidgetError, WidgetError } from './errors.ts'
import { createEventStream } from './event-stream.ts'
import type { Emitter } from './events.ts'
import { createHistory } from './history.ts'
import { createOutbox, type OutboxEntry } from './outbox.ts'
import type { Platform } from './platform.ts'
import { createSession, type GivenSession } from './session.ts'
import type { SessionRecords } from './session-record.ts'
import { createTabStream } from './tab-stream.ts'
import type { ConnectionState, PageContext, SessionView, StreamEvent, WidgetConfig, WidgetEventMap } from './types.ts'

export interface VisitDeps {
  api: Api
  platform: Platform
  records: SessionRecords
  siteKey: string
  locale?: string
  pageContext?: () => PageContext | undefined
  /** The session to begin with, from an identification. */
  given?: GivenSession
  /** Emits events to the application. Not called after the visit was closed. */
  emit: Emitter<WidgetEventMap>['emit']
  config(): WidgetConfig | undefined
  /** Called for each event of the stream, once and in order, after the conversation has handled it. */
  onEvent(event: StreamEvent): void
  onConnection(state: ConnectionState): void
  /**
   * Another tab or the service closed this anonymous session. If another tab has identified the visitor, the chat continues
   * in the identified session. Otherwise the receiver calls `end`. Left out without an identity provider.
   */
  onClosed?(visit: ClosedVisit): void
  /** The session has ended. Unsent messages have been reported as failed. */
  onEnd(code: string): void
}

/** What remains of an anonymous session that was closed. */
export interface ClosedVisit {
  unsent: readonly OutboxEntry[]
  draft?: string
  /** Ends the visit: reports the unsent messages as failed. */
  end(): void
}

export type Visit = ReturnType<typeof createVisit>

/**
 * Everything that belongs to one session: its conversation, outbox, history and stream. A session is one person's, so a change
 * of the person closes the visit and opens another one. A closed visit ignores late answers and emits no events.
 */
export function createVisit(deps: VisitDeps) {
  const { api, platform, records } = deps
  let closed = false
  let opened = false
  let stream: ReturnType<typeof createTabStream> | undefined
  let loaded: Promise<void> | undefined
  const emit: VisitDeps['emit'] = (name, payload) => {
    if (!closed) deps.emit(name, payload)
  }
  const conversation = createConversation({ emit })
  const session = createSession({
    ...deps,
    onEnd(code) {
      if (closed) return
      stop()
      const isClosed = code === 'session.closed'
      const isVerified = session.isVerified()
      const end = () => {
        if (closed) return
        outbox.stop(new WidgetError(code, { terminal: true }))
        // The visitor has logged out in another tab: the next person must not see the conversation.
        if (isClosed && isVerified) conversation.clear(true)
        deps.onEnd(code)
      }
      if (!isClosed || isVerified || !opened || !deps.onClosed) return end()
      outbox.stop()
      deps.onClosed({ unsent: outbox.pending(), draft: session.notes().draft, end })
    },
    onError: (error) => emit('error', error),
  })
  const { withGrant } = session
  const outbox = createOutbox({
    platform,
    send: (input) => withGrant((grant) => api.sendMessage(input, grant)),
    save(entries) {
      const content = session.content()
      if (content) records.writeOutbox(content.sessionId, entries)
    },
    onStatus: conversation.setOwnStatus,
    onAccepted: conversation.takeAnswer,
  })
  const history = createHistory({
    platform,
    messages: conversation.messages,
    async fetchPage(range) {
      const page = await withGrant((grant) => api.history(range, grant))
      const messages = page.messages.filter(({ sequence }) => sequence > (session.notes().hiddenTo ?? 0))
      return { ...page, messages, hasMore: page.hasMore && messages.length === page.messages.length }
    },
    onPage: conversation.tellChanged,
    onMessage(message, missed) {
      conversation.take(message, missed)
      if (message.clientOperationId) outbox.settle(message.clientOperationId)
    },
  })

  return {
    session,
    conversation,
    outbox,
    history,

    /** The session without its credentials. */
    view(): SessionView | undefined {
      const content = session.content()
      if (!opened || !content) return undefined
      const { sessionId, conversationId, continuity, identity } = content
      return { sessionId, conversationId, continuity, identity }
    },

    /** @throws WidgetError `outbox_full` */
    send(entry: OutboxEntry) {
      outbox.add(entry, deps.config()?.limits.outboxMax ?? 50)
      return conversation.addOwn(entry)
    },

    /** The visitor is identified: restores stored messages, starts sending, opens the stream and loads the history. */
    open() {
      const content = session.content()
      if (!content) return
      const { sessionId, replay, identity } = content
      opened = true
      const kept = records.readOutbox()
      const isOwn = kept.sessionId === sessionId
      conversation.setReadTo(session.notes().readTo ?? replay.lastSequence)
      if (isOwn) outbox.restore(kept.entries)
      // Entries of another session are shown as failed, and only to an anonymous visitor.
      if (isOwn || identity.state === 'anonymous') {
        const lost = { code: 'session.expired', recoverable: false }
        for (const entry of kept.entries) conversation.addOwn(isOwn ? entry : { ...entry, error: lost })
      }
      if (!isOwn) records.writeOutbox(sessionId, [])
      emit('session.ready', { session: this.view()! })
      startStream()
      outbox.start()
      loaded = loadHistory()
    },

    /** Resolves when the newest page of the history was loaded, or its load failed. */
    loaded: () => loaded,

    startStream,

    loadHistory,

    isOpened: () => opened,

    draft: () => (opened ? session.notes().draft : undefined),

    markRead() {
      const readTo = Math.max(conversation.lastSequence(), session.notes().readTo ?? 0)
      session.remember({ readTo })
      conversation.setReadTo(readTo)
    },

    /** Closes the visit. Given a reason, unsent messages are reported as failed. */
    close(reason?: WidgetError) {
      outbox.dispose(reason)
      closed = true
      stop()
      session.stop()
    },
  }

  function stop() {
    stream?.stop()
    history.stop()
  }

  function loadHistory() {
    return history.loadNewest().catch((error) => emit('error', toWidgetError(error).detail))
  }

  /** Opens the stream of the present session, in place of an earlier one. */
  function startStream() {
    const { sessionId, replay } = session.content()!
    stream?.stop()
    stream = openStream(sessionId, replay.lastSequence)
    stream.start()
  }

  function openStream(sessionId: string, lastSequence: number) {
    const stream = createEventStream({
      platform,
      settings: deps.config()?.realtime,
      position: session.notes().position ?? { sequence: lastSequence },
      connect: (position, signal) => withGrant((grant) => api.events(position, grant, signal)),
      onEvent(event) {
        conversation.takeEvent(event, outbox.settle)
        if (!closed) deps.onEvent(event)
      },
      onPosition: (position) => session.remember({ position }),
      onBehind: ({ sequence }) => history.fillFrom(sequence).catch(() => false),
      onReset: () => history.reload(true),
      onState(state) {
        if (state === 'online') tab.onOnline()
        deps.onConnection(state)
      },
      onEnd(code, failed) {
        tab.stop()
        if (failed) emit('error', { code: 'realtime_terminal_failure', recoverable: false })
        session.end(code)
      },
    })
    const tab = createTabStream({
      platform,
      session: `service.widget.${sessionId}`,
      open: stream.start,
      close: stream.stop,
    })
    return tab
  }
}
