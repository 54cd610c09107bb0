import { command } from '../command.ts'
import { explainDelivery } from '../explain/delivery.ts'
import { explainSession } from '../explain/session.ts'
import { UsageError } from '../usage.ts'

export const explain = command({
  summary: 'Say why a visitor is not connected, or why a delivery did not arrive',
  flags: {
    session: { type: 'string', description: 'the id of a session; needs the scopes sessions:read, workspaces:read' },
    delivery: { type: 'string', description: 'the id of a delivery; needs the scopes leads:read, subscriptions:read' },
  },
  async *run(services, { session, delivery }) {
    if ((session === undefined) === (delivery === undefined)) throw new UsageError('give --session or --delivery')
    if (session !== undefined) yield* explainSession(services, session)
    else yield* explainDelivery(services, delivery!)
  },
})
