import { isTeam } from '../../../browser/chat/messages.ts'
import { createReceipts } from '../../../browser/chat/receipts.ts'
import { createPause } from '../../../browser/pause.ts'
import type { Platform } from '../../../browser/platform.ts'
import { createTabStream } from '../../../browser/tab-stream.ts'
import { createConversation } from '../messages/conversation.ts'
import { createHistory } from '../messages/history.ts'
import { createOutbox, type OutboxEntry } from '../messages/outbox.ts'
import type { Api } from '../transport/api.ts'
import { createEventStream, positionIn } from '../transport/event-stream.ts'
import { retrying } from '../transport/retrying.ts'
import { isKnownCommand, isKnownSecurity, sessionEndOf, toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import type { Emitter } from '../vocabulary/events.ts'
import type { ConnectionState, ErrorCode, SessionView, StreamEvent, WidgetConfig } from '../vocabulary/types.ts'
import { createSession, type SessionDeps } from './session.ts'

interface VisitDeps extends Omit<SessionDeps, 'platform' | 'onError'> {
  platform: Platform
  /** Emits events to the application. Not called after `close`. */
  emit: Emitter['emit']
  config(): WidgetConfig | undefined
  consented<Answer>(call: () => Promise<Answer>): Promise<Answer>
  /** Called once with each event of the stream, in order, after the conversation has handled it. */
  onEvent(event: StreamEvent): void
  /** Called with each page of the history that belongs to the conversation. */
  onPage(page: Awaited<ReturnType<Api['history']>>): void
  onConnection(state: ConnectionState): void
  /**
   * Called when this anonymous session was closed, for example because another tab identified the
   * visitor. The callback either continues the chat in the visitor's new session, or calls `end` of
   * the given visit. Undefined if there is no identity provider.
   */
  onClosed?(visit: ClosedVisit): void
}

/** Unsent messages and draft of an anonymous session that was closed. */
export interface ClosedVisit {
  unsent: readonly OutboxEntry[]
  draft?: string
  end(): void
}

export type Visit = ReturnType<typeof createVisit>

/**
 * A visit is the use of one session by this page: conversation, outbox, history and stream. A
 * session belongs to one person. If the person changes, the visit is closed and another visit is
 * opened. A closed visit ignores late responses and emits no events.
 */
export function createVisit(deps: VisitDeps) {
  const { api, platform, records } = deps
  let closed = false
  let opened = false
  let stream: ReturnType<typeof createTabStream> | undefined
  let loaded: Promise<void> | undefined
  let isReading = false
  const emit: VisitDeps['emit'] = (name, payload) => {
    if (closed) return
    deps.emit(name, payload)
    if (name === 'messages.changed') void sendReceipt()
  }
  const conversation = createConversation({ emit })
  const session = createSession({
    ...deps,
    onEnd(code, isRefused, about) {
      if (closed) return
      stop()
      const isClosed = code === 'session.closed'
      const isVerified = session.isVerified()
      const end = () => {
        if (closed) return
        outbox.stop(new WidgetError(code, { terminal: true }))
        // The visitor has logged out in another tab. The next person must not see the messages.
        if (isClosed && isVerified) conversation.clear(true)
        if (!opened && sessionEndOf(code)) showLost(records.readOutbox().entries, code)
        deps.onEnd(code, isRefused, about)
      }
      if (!isClosed || isVerified || !opened || !deps.onClosed) return end()
      outbox.stop()
      deps.onClosed({ unsent: outbox.pending(), draft: session.notes().draft, end })
    },
    onError: (error) => emit('error', error),
  })
  const { withGrant, ready } = session
  const outbox = createOutbox({
    platform,
    ready,
    send: (input) => deps.consented(() => withGrant((grant) => api.sendMessage(input, grant))),
    save(entries) {
      const content = session.content()
      if (content) records.writeOutbox(content.sessionId, entries)
    },
    onStatus: conversation.setOwnStatus,
    onAccepted: conversation.mergeAnswer,
  })
  const history = createHistory({
    platform,
    messages: conversation.messages,
    async fetchPage(range) {
      const page = await withGrant((grant) => api.history(range, grant))
      if (!closed) deps.onPage(page)
      const messages = page.messages.filter(({ sequence }) => sequence > (session.notes().hiddenTo ?? 0))
      return { ...page, messages, hasMore: page.hasMore && messages.length === page.messages.length }
    },
    onPage: conversation.emitChanged,
    onMessage(message, missed) {
      conversation.merge(message, missed)
      if (message.clientOperationId) outbox.confirm(message.clientOperationId)
    },
  })

  const retries = { pause: createPause(platform.clock), random: platform.random, attempts: 8, isEnough: () => closed }
  const sendReceipt = createReceipts({
    received: () =>
      conversation.messages
        .all()
        .flatMap(({ author, messageId, sequence, deliveryStatus: state }) =>
          isTeam(author) && messageId && sequence ? [{ messageId, sequence, state }] : [],
        ),
    readTo: () => session.notes().readTo ?? 0,
    isHidden: () => platform.lifecycle.isHidden?.() ?? false,
    // Without the receipt, an answer that the visitor has read counts as unseen, and is mailed.
    report: (upToSequence, state) =>
      retrying(() => withGrant((grant) => api.report('/messages/receipts', { upToSequence, state }, grant)), retries),
  })
  const unfollow = platform.lifecycle.subscribe((signal) => {
    if (opened && signal === 'visible') void sendReceipt()
  })

  return {
    session,
    conversation,
    outbox,
    history,

    /** Returns the session without its credentials, or undefined if the visit is not open. */
    view(): SessionView | undefined {
      const content = session.content()
      if (!opened || !content) return undefined
      const { sessionId, conversationId, continuity, identity } = content
      return { sessionId, conversationId, continuity, identity }
    },

    /**
     * Adds a message to the outbox.
     *
     * @throws WidgetError `outbox_full`
     */
    send(entry: OutboxEntry) {
      outbox.add(entry, deps.config()?.limits.outboxMax ?? 50)
      return conversation.addOwn(entry)
    },

    /**
     * Opens the visit: restores stored messages, starts sending, opens the stream and loads the
     * history. Call when it is known who the visitor is, or that the visitor stays anonymous.
     */
    open() {
      const content = session.content()
      if (!content) return
      const { sessionId, replay, identity } = content
      opened = true
      const stored = records.readOutbox()
      const isOwn = stored.sessionId === sessionId
      conversation.setReadTo(session.notes().readTo ?? replay.lastSequence)
      if (isOwn) {
        outbox.restore(stored.entries)
        for (const entry of stored.entries) conversation.addOwn(entry)
      } else {
        // Another person may have written unsent messages of another session.
        if (identity.state === 'anonymous') showLost(stored.entries, 'session.expired')
        records.writeOutbox(sessionId, [])
      }
      emit('session.ready', { session: this.view()! })
      startStream()
      outbox.start()
      loaded = loadHistory()
    },

    /** Resolves when the newest history page is loaded or loading it has failed. */
    loaded: () => loaded,
    startStream,
    loadHistory,
    isOpened: () => opened,
    draft: () => (opened ? session.notes().draft : undefined),

    /**
     * Retries a failed message. Returns false if no failed message has this operation id.
     *
     * @throws WidgetError `failure_outdated`
     */
    retry(clientOperationId: string, failureVersion?: number): boolean {
      session.act()
      return outbox.retry(clientOperationId, failureVersion)
    },

    resendRefused: outbox.resendRefused,

    /** Stops the answers that grow. A failed request leaves them growing, and the visitor may try again. */
    stopAnswer() {
      session.act()
      for (const { growing, messageId } of conversation.messages.all())
        if (growing) withGrant((grant) => api.stopAnswer(messageId!, platform.newId(), grant)).catch(() => {})
    },

    markRead(upTo = conversation.lastSequence()) {
      session.act()
      const readTo = Math.max(upTo, session.notes().readTo ?? 0)
      session.remember({ readTo })
      conversation.setReadTo(readTo)
      void sendReceipt()
    },

    /** Closes the visit. If a reason is given, reports unsent messages as failed. */
    close(reason?: WidgetError) {
      outbox.dispose(reason)
      closed = true
      stop()
      session.stop()
    },
  }

  /** Shows unsent messages of an ended session as failed. They cannot be retried. */
  function showLost(entries: readonly OutboxEntry[], code: ErrorCode) {
    for (const entry of entries) {
      const failureVersion = (entry.failureVersion ?? 0) + 1
      conversation.addOwn({ ...entry, error: { code, recoverable: false }, failureVersion })
    }
  }

  function stop() {
    stream?.stop()
    history.stop()
    retries.pause.end()
    unfollow()
  }

  function loadHistory() {
    return history.loadNewest().catch((error) => emit('error', toWidgetError(error).detail))
  }

  /** Closes the previous stream and opens a stream for the current session. */
  function startStream() {
    const { sessionId, replay } = session.content()!
    stream?.stop()
    const events = createEventStream({
      platform,
      settings: deps.config()?.realtime,
      position: session.notes().position ?? positionIn(replay.epoch, replay.lastSequence),
      ready,
      connect: (position, signal) => withGrant((grant) => api.events(position, grant, signal)),
      onEvent(event) {
        surfaceUnknown(event)
        conversation.handleEvent(event, outbox.confirm, readAgain)
        if (!closed) deps.onEvent(event)
      },
      onPosition: (position) => session.remember({ position }),
      onBehind: ({ sequence }) => history.fillFrom(sequence).catch(() => false),
      onReset: () => history.reload(true),
      onState(state) {
        if (state === 'online') {
          tab.onOnline()
          retries.pause.hurry()
          void sendReceipt()
        }
        deps.onConnection(state)
      },
      onResetRequired(about) {
        // Sequences now count other messages, which the visitor has neither read nor hidden.
        if (about.reason === 'epoch_changed') {
          session.remember({ readTo: 0, hiddenTo: 0 })
          conversation.setReadTo(0)
        }
        emit('replay.reset.required', about)
      },
      onEnd(code, failed, about) {
        tab.stop()
        if (failed) emit('error', { code: 'realtime_terminal_failure', recoverable: false })
        session.end(code, about)
      },
    })
    const tab = createTabStream({
      platform,
      session: `service.widget.${sessionId}`,
      open: events.start,
      close: events.stop,
    })
    stream = tab
    tab.start()
  }

  /** Reads a message of which a part is missing. A part that is missing after that reads it once more. */
  function readAgain(sequence: number) {
    if (isReading) return
    isReading = true
    history
      .fillFrom(sequence - 1)
      .catch(() => false)
      .finally(() => {
        isReading = false
      })
  }

  /** Reports an event of an unknown type. One about security also stops sending. */
  function surfaceUnknown({ type, category }: StreamEvent) {
    if (category === 'security' && !isKnownSecurity(type)) {
      const failure = new WidgetError('unsupported_security_event')
      emit('error', failure.detail)
      outbox.hold(failure)
    } else if (category === 'command' && !isKnownCommand(type)) {
      emit('error', { code: 'unsupported_command', recoverable: true })
    }
  }
}
