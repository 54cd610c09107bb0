import { ConversationStatus } from '#proto/messaging/v1/messaging_pb.js'
import type { InboxFilter } from '../router.ts'

/** A list of the inbox. All but `closed` have open conversations only. */
export type Queue = keyof typeof queues

/** The queues, with their names and with what an empty one says. */
export const queues = {
  unanswered: { name: 'Unanswered', empty: ['Nobody is waiting', 'Every open conversation has an answer.'] },
  mine: {
    name: 'Mine',
    empty: ['No conversations assigned to you', 'Press a in a conversation to assign it to yourself.'],
  },
  unassigned: { name: 'Unassigned', empty: ['No unassigned conversations', 'Every open conversation has an agent.'] },
  open: { name: 'All', empty: ['No open conversations', 'A conversation appears here when a visitor writes.'] },
  closed: {
    name: 'Closed',
    empty: ['No closed conversations', 'Closed conversations appear here. A new message reopens them.'],
  },
} as const

export const queueOf = ({ queue }: InboxFilter): Queue =>
  queue && Object.hasOwn(queues, queue) ? (queue as Queue) : 'open'

/** Returns the part of a request that limits it to conversations of the operator, or of nobody. */
export const assigneeIn = (me: string, isMine: boolean, isNobody: boolean) =>
  isMine
    ? { case: 'operatorId' as const, value: me }
    : isNobody
      ? { case: 'unassigned' as const, value: true }
      : { case: undefined }

/** Returns the request that lists the conversations of a filter. `me` is the operator's id. */
export function listRequest(filter: InboxFilter, me: string) {
  const queue = queueOf(filter)
  return {
    tag: filter.tag,
    status: queue === 'closed' ? ConversationStatus.CLOSED : ConversationStatus.OPEN,
    unanswered: queue === 'unanswered',
    assignee: assigneeIn(me, queue === 'mine', queue === 'unassigned'),
    countForOperator: me,
  }
}
