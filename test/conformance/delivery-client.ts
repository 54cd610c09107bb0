import { randomUUID } from 'node:crypto'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { CreateSubscriptionRequestSchema } from '#proto/lead/v1/subscription_pb.js'
import { dataFolderSecrets } from '../../serve/data-folder.ts'
import type { ReceivedRequest } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { signWorkspaceSession } from '../support/workspace-session.ts'
import type { Suite } from './suite.ts'

/** An attempt as the contract's routes return it. */
// biome-ignore lint/suspicious/noExplicitAny: tests check the shape of bodies themselves
type Attempt = any

interface Answer {
  status: number
  body: Attempt
}

interface Requested {
  attempt: Attempt
  /** Repeats the request. The response has the current state of the attempt. */
  repeat(): Promise<Answer>
}

/** Creates a client for the lead routes. Its subscriptions send to the suite's receiver. */
export function createDeliveryClient(suite: () => Suite) {
  const leads = () => suite().roomy.operator.leads
  const workspaceId = () => suite().roomy.stack.demo.workspaceId
  const settings = (destinationUrl: string) => ({ workspaceId: workspaceId(), destinationUrl, mappedFields: ['email'] })

  /** Sends a request to the contract's lead routes, with a workspace session as credential. */
  async function request(path: string, body: object, token = suite().roomy.stack.demo.workspaceSession) {
    const response = await fetch(`${suite().roomy.stack.gateways[0]!.url}/api/leads/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: await response.json() } as Answer
  }

  /** Creates a lead and returns its id. */
  const capture = async (email = 'ada@example.com') => {
    const fields = { email, phone: 'is not mapped' }
    return (await leads().captureLead({ workspaceId: workspaceId(), source: 'test', fields })).leadId
  }

  return {
    settings,
    request,
    capture,

    /** Creates a subscription. The first part of its path selects the receiver's behaviour. */
    async subscribe(behaviour: string, change: MessageInitShape<typeof CreateSubscriptionRequestSchema> = {}) {
      const path = `${behaviour}?${randomUUID()}`
      const created = await leads().createSubscription({ ...settings(`${suite().receiver.http}${path}`), ...change })
      return { ...created, path }
    },

    async deliver(subscriptionId: string, email?: string): Promise<Requested & { leadId: string }> {
      const leadId = await capture(email)
      const body = { subscriptionId, idempotencyKey: randomUUID() }
      const repeat = () => request(`${leadId}/delivery-attempts`, body)
      return { leadId, attempt: (await repeat()).body, repeat }
    },

    /** Waits until the attempt has ended, and returns it. */
    settled: ({ repeat }: Requested): Promise<Attempt> =>
      until('the attempt to end', async () => {
        const { body } = await repeat()
        return ['pending', 'sending'].includes(body.status) ? undefined : body
      }),

    /** Returns the requests that the receiver got at the path of a subscription. */
    received: (path: string) => suite().receiver.to(path),

    /** Signs a workspace session with this scope for an operator. */
    async sessionWith(scope: string, sub = 'operator_1') {
      const { workspaceSessionSecret } = await dataFolderSecrets(suite().roomy.stack.dataDir)
      const key = new TextEncoder().encode(workspaceSessionSecret)
      return signWorkspaceSession({ key, claims: { wid: workspaceId(), scope, sub } })
    },
  }
}

export const idOf = ({ headers }: ReceivedRequest) => headers['webhook-id']
