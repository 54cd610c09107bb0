import type { Logger } from 'pino'
import { createRecurring, type Recurring } from '../concurrency/recurring.ts'
import type { CoreConfig } from '../config.ts'
import type { EventLog } from '../log/event-log.ts'
import { createTransientSweep, type TransientSweep } from '../log/transient-sweep.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import type { ConversationStore } from '../store/conversations.ts'
import type { Database } from '../store/database.ts'
import type { EventStore } from '../store/events.ts'
import { createMessageStateStore } from '../store/message-states.ts'
import type { SessionStore } from '../store/sessions.ts'
import { createTransientEventStore } from '../store/transient-events.ts'
import { createTypingStore } from '../store/typing.ts'
import type { ConversationAccess } from './conversation-access.ts'
import { type ConversationSummaries, createConversationSummaries } from './conversation-summaries.ts'
import { type Conversations, createConversations } from './conversations.ts'
import type { Inbox } from './inbox.ts'
import { createMessageStates, type MessageStates } from './message-states.ts'
import { createMessages, type Messages } from './messages.ts'
import { createTyping, type Typing } from './typing.ts'

export interface ConversationParts {
  messages: Messages
  typing: Typing
  states: MessageStates
  /** What operators do with conversations. */
  conversationDesk: Conversations
  conversationAccess: ConversationAccess
  conversationSummaries: ConversationSummaries
  transientSweep: TransientSweep
  chores: Recurring[]
  /** Resolves when nothing is left to do in the background. */
  drain(): Promise<void>
}

export interface ConversationPartsDependencies {
  config: CoreConfig
  collections: Database['collections']
  sessionStore: SessionStore
  conversations: ConversationStore
  conversationAccess: ConversationAccess
  events: EventStore
  log: EventLog
  access: VisitorAccess
  inbox: Inbox
  logger: Logger
  now: () => number
}

/** How often typing that nobody renewed is ended, and what dead processes left is finished, in milliseconds. */
const typingEveryMs = 500
const healEveryMs = 10_000

/** What is said and done in conversations. */
export function createConversationParts(dependencies: ConversationPartsDependencies): ConversationParts {
  const {
    config,
    collections,
    sessionStore,
    conversations,
    conversationAccess,
    events,
    log,
    access,
    inbox,
    logger,
    now,
  } = dependencies
  const conversationDesk = createConversations({ store: conversations, log, conversationAccess })
  const typing = createTyping({
    store: createTypingStore(collections),
    log,
    access,
    conversationAccess,
    logger,
    now,
    settings: { lastsMs: config.TYPING_SECONDS * 1000 },
  })
  const states = createMessageStates({
    store: createMessageStateStore(collections),
    log,
    conversationAccess,
    logger,
    now,
  })
  const transientSweep = createTransientSweep({ store: createTransientEventStore(collections), now })

  async function heal() {
    await states.heal()
    await conversationDesk.heal()
  }

  async function sweep() {
    for (let more = true; more; ) ({ more } = await transientSweep.sweep())
  }

  return {
    typing,
    states,
    conversationDesk,
    conversationAccess,
    conversationSummaries: createConversationSummaries({ sessions: sessionStore, events }),
    transientSweep,
    messages: createMessages({
      access,
      sessions: sessionStore,
      log,
      events,
      conversationAccess,
      inbox,
      typing,
      states,
      settings: {
        bodyMaxLength: config.MESSAGE_BODY_MAX_LENGTH,
        pageContextMaxBytes: config.PAGE_CONTEXT_MAX_BYTES,
        historyPageMax: config.HISTORY_PAGE_MAX,
        historyPageDefault: config.HISTORY_PAGE_DEFAULT,
      },
    }),
    chores: [
      createRecurring({ name: 'end of typing', everyMs: typingEveryMs, run: typing.endOverdue, logger }),
      createRecurring({ name: 'healing', everyMs: healEveryMs, run: heal, logger }),
      createRecurring({
        name: 'sweep of transient events',
        everyMs: config.TRANSIENT_SWEEP_SECONDS * 1000,
        run: sweep,
        logger,
      }),
    ],
    async drain() {
      await Promise.all([typing.drain(), states.drain()])
    },
  }
}
