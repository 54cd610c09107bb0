import { type ReceivedMail, startMailServer } from '../../core/test/mail-server.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { startLocalWorker } from '../support/local-worker.ts'
import type { Operator } from '../support/operator.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import type { RunningStack } from '../support/stack.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { type Client, createClient } from './client.ts'

/** A running stack, and its clients for visitors and operators. */
export interface StackWithClients<S extends RunningStack = RunningStack> {
  stack: S
  client: Client
  operator: Operator
}

export interface Suite {
  /** Stack with two gateways, two cores, very high rate limits and a small replay window. */
  roomy: StackWithClients
  /** Stack with short lifetimes. */
  short: StackWithClients
  /** Stack with the contract's rate limits. */
  limited: StackWithClients
  /** Headers that make a request to `limited` come from another client address. */
  fromAddress(last: number): Record<string, string>
  /** The test clients of all stacks that the rules have started. */
  clients: Client[]
  /** Destination that the delivery worker of `roomy` may reach. */
  receiver: Receiver
  /** Returns the mails that `roomy` has sent. */
  mails(): ReceivedMail[]
  /** Number of events that a stream of `roomy` replays. */
  replayWindowEvents: number
  /** Maximum length of an agent's message to `roomy`. */
  agentBodyLength: number
}

const REPLAY_WINDOW_EVENTS = 20
const AGENT_BODY_LENGTH = 100_000
/** Lifetime of a grant in seconds. It is long enough that a busy machine renews the grant in time. */
export const GRANT_SECONDS = 16
export const CREATION_REPEAT_SECONDS = 3
export const SESSION_SECONDS = 24
/** Time for which a session can be renewed after its grant has expired, in seconds. */
export const RENEWABLE_SECONDS = 8
/** Maximum age of a stream, in seconds. */
export const STREAM_SECONDS = 8

/** A suite whose stacks run in this process. */
export interface LocalSuite extends Suite {
  roomy: StackWithClients<LocalStack>
}

export async function startSuite(databases: [TestDatabase, TestDatabase]): Promise<LocalSuite> {
  const mailServer = await startMailServer()
  const roomyStack = startLocalStack({
    database: databases[0],
    ...roomyOptions,
    coreEnv: {
      ...roomyOptions.coreEnv,
      SMTP_URL: mailServer.url,
      SMTP_FROM: 'Shop <desk@shop.example>',
      PUBLIC_URL: 'https://chat.shop.example',
    },
  })
  const shortStack = startLocalStack({
    database: databases[1],
    env: {
      // Lets each test choose its client address with X-Forwarded-For.
      TRUST_PROXY: '1',
      HEARTBEAT_SECONDS: '1',
      STREAM_MAX_AGE_SECONDS: String(STREAM_SECONDS),
      GRANT_LIFETIME_SECONDS: String(GRANT_SECONDS),
      SESSION_LIFETIME_SECONDS: String(SESSION_SECONDS),
      SESSION_RENEWABLE_SECONDS: String(RENEWABLE_SECONDS),
      SESSION_CREATION_REPEAT_SECONDS: String(CREATION_REPEAT_SECONDS),
      REPLAY_WINDOW_SECONDS: '1',
      MONGODB_TIMEOUT_MS: '3000',
    },
  })
  const roomy = await withClients(await roomyStack)
  const short = await withClients(await shortStack)
  return {
    roomy,
    short,
    limited: short,
    fromAddress: (last) => ({ 'x-forwarded-for': `192.0.2.${last}` }),
    clients: [roomy.client, short.client],
    receiver: await startDestination(roomy.stack),
    mails: () => mailServer.mails,
    replayWindowEvents: REPLAY_WINDOW_EVENTS,
    agentBodyLength: AGENT_BODY_LENGTH,
  }
}

/** Starts a receiver of leads, and a delivery worker that may send to its address only. */
async function startDestination(stack: LocalStack): Promise<Receiver> {
  const receiver = await startReceiver()
  atFileEnd(() => receiver.close())
  await startLocalWorker(stack)
  return receiver
}

/** Options of the stack with very high rate limits and a small replay window. */
export const roomyOptions = {
  cores: 2,
  gateways: 2,
  env: {
    RATE_LIMIT_FACTOR: '1000',
    HEARTBEAT_SECONDS: '1',
    REPLAY_WINDOW_EVENTS: String(REPLAY_WINDOW_EVENTS),
  },
  // Raises the limit for agents' messages only. The gateways still limit visitors' messages to the
  // contract's maximum.
  coreEnv: { MESSAGE_BODY_MAX_LENGTH: String(AGENT_BODY_LENGTH), DELIVERY_ALLOWED_CIDRS: '127.0.0.0/30' },
}

export const withClients = async <S extends RunningStack>(stack: S): Promise<StackWithClients<S>> => ({
  stack,
  client: await createClient(stack),
  operator: stack.operator(),
})

/** Waits until the gateways accept streams. After a core crash they reject streams until they find a core. */
export async function waitForStreams({ gateways }: RunningStack, visitor: Visitor) {
  for (const { url: via } of gateways) {
    await until('a stream', async () => {
      const stream = await visitor.openStream({ via }).catch(() => undefined)
      stream?.close()
      return stream?.status === 200
    })
  }
}
