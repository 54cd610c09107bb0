import { command } from '../command.ts'
import { explainDelivery } from '../explain/delivery.ts'
import { explainMessage } from '../explain/message.ts'
import { explainSession } from '../explain/session.ts'
import { UsageError } from '../usage.ts'

export const explain = command({
  summary: 'Say why a visitor is not connected, why a message was slow, or why a delivery did not arrive',
  flags: {
    session: {
      type: 'string',
      description: 'the id of a session; needs the scopes sessions:read, workspaces:read, messages:read',
    },
    message: { type: 'string', description: 'the id of a message of --conversation; needs the scope messages:read' },
    conversation: { type: 'string', description: 'the id of the conversation of --message' },
    delivery: { type: 'string', description: 'the id of a delivery; needs the scopes leads:read, subscriptions:read' },
  },
  printsText: true,
  async *run(services, { session, message, conversation, delivery }) {
    const isOne = [session, message, delivery].filter((id) => id !== undefined).length === 1
    if (!isOne || (message === undefined) !== (conversation === undefined)) {
      throw new UsageError('give --session, --delivery, or --message with its --conversation')
    }
    if (session !== undefined) yield* explainSession(services, session)
    else if (message !== undefined) yield* explainMessage(services, conversation!, message)
    else yield* explainDelivery(services, delivery!)
  },
})
