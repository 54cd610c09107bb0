import { createJob, type Job } from '../concurrency/job.ts'
import type { CoreKit } from '../kit.ts'
import type { LogService } from '../log/service.ts'
import type { VisitorService } from '../visitors/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import { type Assignments, createAssignments } from './assignments.ts'
import { type ConversationAccess, createConversationAccess } from './conversation-access.ts'
import { type ConversationSummaries, createConversationSummaries } from './conversation-summaries.ts'
import { createInbox, type Inbox } from './inbox.ts'
import { createInboxWatch, type InboxWatch } from './inbox-watch.ts'
import { createMessageStates, type MessageStates } from './message-states.ts'
import { createMessages, type Messages } from './messages.ts'
import { createTyping, type Typing } from './typing.ts'

/** Conversations: messages and their states, typing, assignments and the operators' inbox. */
export interface ConversationService {
  messages: Messages
  typing: Typing
  states: MessageStates
  assignments: Assignments
  conversationAccess: ConversationAccess
  conversationSummaries: ConversationSummaries
  inbox: Inbox
  inboxWatch: InboxWatch
  jobs: Job[]
  /** Resolves when every background write is done. */
  drain(): Promise<void>
}

const typingEveryMs = 500
const reconcileEveryMs = 10_000
const missedMessagesEveryMs = 3000

export function createConversationService(
  { config, stores, bus, logger, now }: CoreKit,
  { log }: LogService,
  { directory }: WorkspaceService,
  { visitorAccess: access }: VisitorService,
): ConversationService {
  const { conversations, events } = stores
  const conversationAccess = createConversationAccess(conversations, directory)
  const assignments = createAssignments({ store: conversations, log, conversationAccess })
  const inbox = createInbox({ conversations, events, bus, logger, now })
  const inboxWatch = createInboxWatch({ events, conversations, bus, logger, now })
  const typing = createTyping({
    store: stores.typing,
    log,
    access,
    conversationAccess,
    logger,
    now,
    settings: { lastsMs: config.TYPING_SECONDS * 1000 },
  })
  const states = createMessageStates({ store: stores.messageStates, log, conversationAccess, logger, now })
  const messages = createMessages({
    access,
    sessions: stores.sessions,
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
  })

  async function reconcile() {
    await states.reconcile()
    await assignments.reconcile()
  }

  return {
    messages,
    typing,
    states,
    assignments,
    conversationAccess,
    conversationSummaries: createConversationSummaries({ sessions: stores.sessions, events }),
    inbox,
    inboxWatch,
    jobs: [
      createJob({ name: 'expire typing', everyMs: typingEveryMs, run: typing.endOverdue, logger }),
      createJob({
        name: 'reconcile conversations',
        everyMs: reconcileEveryMs,
        run: reconcile,
        logger,
      }),
      createJob({
        name: 'check for missed messages',
        everyMs: missedMessagesEveryMs,
        run: inboxWatch.check,
        logger,
      }),
    ],
    async drain() {
      await Promise.all([typing.drain(), states.drain()])
    },
  }
}
