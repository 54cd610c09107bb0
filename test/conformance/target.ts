import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import Type, { type Static } from 'typebox'
import Value from 'typebox/value'
import type { DemoFile } from '../../dev/demo-seed.ts'
import { type Operator, operatorOf } from '../support/operator.ts'
import type { RunningStack } from '../support/stack.ts'
import { startVisitor } from '../support/visitor.ts'
import { createClient } from './client.ts'
import { MissingAccess, missing } from './missing-access.ts'
import type { Suite } from './suite.ts'

/** The contract's number of events that a stream replays. */
const REPLAY_WINDOW_EVENTS = 1000
const AGENT_BODY_LENGTH = 4000

const Text = Type.String({ minLength: 1 })
const TargetSchema = Type.Object({
  gatewayUrl: Text,
  coreUrl: Text,
  siteKey: Text,
  origin: Text,
  workspaceId: Text,
  serviceToken: Text,
  identity: Type.Object({ kid: Text, secret: Text }),
})

type Access = Static<typeof TargetSchema>

/**
 * Addresses and credentials of a deployment to check. `DATA_DIR/demo.json` has these fields. A public
 * deployment gives the first three only.
 */
export type Target = Pick<Access, 'gatewayUrl' | 'siteKey' | 'origin'> & Partial<Access>

/** @throws an error that names the file and the invalid fields and shows no value */
export async function readTarget(path: string): Promise<Access> {
  const target = parse(path, await readFile(path, 'utf8'))
  const invalid = [...Value.Errors(TargetSchema, target)].map(
    ({ instancePath, message }) => `${instancePath || '/'} ${message}`,
  )
  if (invalid.length > 0) throw new Error(`${path}: ${invalid.join(', ')}`)
  return target as Access
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own error may quote a secret.
    throw new Error(`${path} is no JSON file: docs/testing.md shows its form`)
  }
}

/** Repeats a request that a rate limit refused, after the time that the answer names. */
const patientFetch: typeof fetch = async (input, init) => {
  for (;;) {
    const answer = await fetch(input, init)
    if (answer.status !== 429) return answer
    await answer.body?.cancel()
    await delay(Number(answer.headers.get('retry-after')) * 1000)
  }
}

/** Repeats only requests for new sessions. All other requests return their 429 to the test. */
const sessionsPatiently: typeof fetch = (input, init) =>
  (String(input).endsWith('/sessions') ? patientFetch : fetch)(input, init)

function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new MissingAccess(what)
  return value
}

/** Returns a suite for a running deployment. Fields that the deployment does not provide throw `MissingAccess`. */
export async function suiteOf({ gatewayUrl, ...target }: Target): Promise<Suite> {
  const urls = gatewayUrl.split(',').map((url) => ({ url: url.replace(/\/$/, '') }))
  const { coreUrl, serviceToken } = target
  const operator =
    coreUrl !== undefined && serviceToken !== undefined
      ? operatorOf(coreUrl, serviceToken)
      : missing<Operator>('a service token')
  const demo: DemoFile = {
    gatewayUrl,
    siteKey: target.siteKey,
    origin: target.origin,
    workspaceSession: '',
    mongodbUri: '',
    get coreUrl() {
      return required(coreUrl, 'the address of a core')
    },
    get workspaceId() {
      return required(target.workspaceId, 'the id of a workspace')
    },
    get serviceToken() {
      return required(serviceToken, 'a service token')
    },
    get identity() {
      return required(target.identity, 'an identity secret')
    },
  }
  const withClients = async (send: typeof fetch) => {
    const stack: RunningStack = {
      demo,
      get dataDir(): string {
        throw new MissingAccess('the signing keys of the deployment')
      },
      get cores() {
        return [{ url: demo.coreUrl }]
      },
      // Many tests use two gateways. If there is one, they use it twice.
      gateways: urls.length > 1 ? urls : [...urls, ...urls],
      operator: () => operator,
      newVisitor: ({ origin = target.origin, siteKey = target.siteKey, ...options } = {}) =>
        startVisitor({ gatewayUrl: urls[0]!.url, origin, siteKey, fetch: send, ...options }),
      addGateway: () => {
        throw new MissingAccess('another gateway')
      },
    }
    return { stack, client: await createClient(stack, send), operator }
  }
  const roomy = await withClients(patientFetch)
  const limited = await withClients(sessionsPatiently)
  return {
    roomy,
    short: missing('short lifetimes'),
    limited,
    fromAddress: () => {
      throw new MissingAccess('several client addresses')
    },
    clients: [roomy.client, limited.client],
    receiver: missing('a receiver that the delivery workers may reach'),
    mails: () => {
      throw new MissingAccess('a mail server of the deployment, whose mails the run can read')
    },
    replayWindowEvents: REPLAY_WINDOW_EVENTS,
    agentBodyLength: AGENT_BODY_LENGTH,
  }
}
