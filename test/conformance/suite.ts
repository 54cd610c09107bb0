import { type Operator, operatorOf } from '../support/operator.ts'
import { type Stack, type StackOptions, startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { type Client, createClient } from './client.ts'

/** A stack with a visitor client and an operator client. */
export interface Scene {
  stack: Stack
  client: Client
  operator: Operator
}

export interface Suite {
  /** Two gateways and two cores, with very high rate limits and a small replay window. */
  roomy: Scene
  /** One gateway and one core, with default rate limits and short lifetimes. */
  short: Scene
}

export const REPLAY_WINDOW_EVENTS = 20
export const GRANT_SECONDS = 6
export const SESSION_SECONDS = 9

export async function startSuite(databases: [StackOptions['database'], StackOptions['database']]): Promise<Suite> {
  const roomy = startScene({
    database: databases[0],
    cores: 2,
    gateways: 2,
    env: {
      RATE_LIMIT_FACTOR: '1000',
      HEARTBEAT_SECONDS: '1',
      REPLAY_WINDOW_EVENTS: String(REPLAY_WINDOW_EVENTS),
    },
    // Affects agents' messages only: the gateways limit visitors' messages by the contract.
    coreEnv: { MESSAGE_BODY_MAX_LENGTH: '100000' },
  })
  const short = startScene({
    database: databases[1],
    env: {
      // Lets each test choose its address with X-Forwarded-For.
      TRUST_PROXY: '1',
      HEARTBEAT_SECONDS: '1',
      STREAM_MAX_AGE_SECONDS: '4',
      GRANT_LIFETIME_SECONDS: String(GRANT_SECONDS),
      SESSION_LIFETIME_SECONDS: String(SESSION_SECONDS),
      SESSION_CREATION_REPEAT_SECONDS: '1',
      REPLAY_WINDOW_SECONDS: '1',
      MONGODB_TIMEOUT_MS: '1000',
    },
  })
  return { roomy: await roomy, short: await short }
}

async function startScene(options: StackOptions): Promise<Scene> {
  const stack = await startStack(options)
  return {
    stack,
    client: await createClient(stack),
    operator: operatorOf(stack.cores[0]!.url, stack.demo.serviceToken),
  }
}

/** A separate site, for tests that change its connection or its origins. */
export async function newSite({ operator }: Scene, origins: string[]) {
  const { workspace } = await operator.workspaces.createWorkspace({ name: 'Another' })
  const { connection } = await operator.workspaces.createConnection({
    workspaceId: workspace!.workspaceId,
    name: 'Site',
  })
  const { connectionId } = connection!
  const { installation } = await operator.workspaces.createInstallation({ connectionId, origins })
  return { connectionId, siteKey: installation!.publicSiteKey }
}

/** After a core crash, a gateway rejects new streams as retryable until it finds a core again. */
export async function waitForStreams({ gateways }: Stack, visitor: Visitor) {
  for (const { url: via } of gateways) {
    await until('a stream', async () => {
      const stream = await visitor.openStream({ via }).catch(() => undefined)
      stream?.close()
      return stream?.status === 200
    })
  }
}
