import { createHash } from 'node:crypto'
import type { ScenarioConversation } from './scenario-conversation.ts'
import type { SeenRequest } from './scenario-http.ts'
import type { Refusal } from './scenarios.ts'

const lifetimeMs = 120_000

interface ScenarioCommand {
  kind: 'navigation' | 'screenshot'
  state: string
  expiresAtMs: number
}

type Answered = { status: number; body?: unknown } | Refusal | 'lost' | undefined

/**
 * Routes for consent, typing, page reports, forms and agents' requests of the scenario server. Tests inject
 * failures with `failNext`.
 */
export function createScenarioFeatures(now: () => number) {
  const commands = new Map<string, ScenarioCommand>()
  const repeated = new Map<string, { input: string; answered: { status: number; body?: unknown } }>()
  const failures = new Map<string, (Refusal | 'lost')[]>()
  const leads: Record<string, string>[] = []
  const consents: string[] = []
  const ratings: Record<string, unknown>[] = []
  const uploads = new Map<string, Buffer>()
  const held = new Map<string, Promise<void>>()
  let counter = 0

  return {
    /** Fields of the submitted forms. */
    leads,
    /** Decisions on the consent policy. */
    consents,
    /** Bodies of the accepted ratings. */
    ratings,
    /** Uploaded bytes, by `requestId`. */
    uploads,
    commandState: (id: string) => commands.get(id)?.state,

    /** Rejects the next requests whose path contains `part`, or loses their answers. */
    failNext(part: string, ...outcomes: (Refusal | 'lost')[]) {
      failures.set(part, outcomes)
    },

    /**
     * Handles requests whose path contains `part`, but delays their answers until the returned function is called.
     */
    hold(part: string): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      held.set(part, promise)
      return () => {
        held.delete(part)
        resolve()
      }
    },

    /** Resolves when answers to a path are no longer delayed. */
    async released(path: string) {
      await [...held].find(([part]) => path.includes(part))?.[1]
    },

    /** Sends an agent's request to the page. Returns the command's id. */
    request(
      conversation: ScenarioConversation,
      kind: ScenarioCommand['kind'],
      about: Record<string, unknown> = {},
    ): string {
      counter += 1
      const id = `${kind === 'navigation' ? 'cmd' : 'scr'}_${counter}`
      const expiresAtMs = now() + lifetimeMs
      commands.set(id, { kind, state: 'requested', expiresAtMs })
      const idField = kind === 'navigation' ? 'commandId' : 'requestId'
      conversation.emit(`${kind}.requested`, {
        [idField]: id,
        expiresAt: new Date(expiresAtMs).toISOString(),
        ...about,
      })
      return id
    },

    cancel(conversation: ScenarioConversation, id: string) {
      const { kind } = commands.get(id)!
      commands.get(id)!.state = 'cancelled'
      conversation.emit(`${kind}.cancelled`, { [kind === 'navigation' ? 'commandId' : 'requestId']: id })
    },

    answer(seen: SeenRequest): Answered {
      const failure = [...failures].find(([part, rest]) => seen.path.includes(part) && rest.length > 0)?.[1].shift()
      if (failure && failure !== 'lost') return failure
      const answered = once(seen)
      return failure ?? answered
    },
  }

  /**
   * Handles a request once per idempotency key. A later request with the same key gets the answer of the first one.
   */
  function once(seen: SeenRequest): Answered {
    const key = `${seen.path} ${seen.headers['idempotency-key']}`
    const input = createHash('sha256').update(seen.bytes).digest('hex')
    const before = repeated.get(key)
    if (before && seen.headers['idempotency-key']) {
      return before.input === input ? before.answered : { status: 409, code: 'IdempotencyConflict' }
    }
    const answered = act(seen)
    if (answered && answered !== 'lost' && !('code' in answered)) repeated.set(key, { input, answered })
    return answered
  }

  function act({ method, path, body, bytes }: SeenRequest): Answered {
    if (method !== 'POST') return undefined
    if (['/typing', '/presence', '/messages/receipts', '/context/page'].includes(path)) return { status: 204 }
    if (path === '/sessions/consent') {
      consents.push(String(body?.decision))
      const decidedAt = new Date(now()).toISOString()
      return { status: 200, body: { decision: body?.decision, policyVersion: body?.policyVersion, decidedAt } }
    }
    if (path === '/ratings') {
      ratings.push(body ?? {})
      return { status: 201, body: { score: body?.score, sequence: 0, ratedAt: new Date(now()).toISOString() } }
    }
    if (path.startsWith('/forms/')) {
      leads.push(body?.fields as Record<string, string>)
      return { status: 202, body: { formSubmissionId: `frm_${leads.length}` } }
    }
    const [, id = '', action] = /^\/commands\/(?:navigation|screenshots)\/([^/]+)\/(\w+)$/.exec(path) ?? []
    const command = commands.get(id)
    if (!command) return action ? { status: 404, code: 'CommandNotFound' } : undefined
    const expires = ['requested', 'granted'].includes(command.state)
    if (expires && command.expiresAtMs <= now()) return { status: 410, code: 'CommandExpired' }
    const next = action === 'upload' ? 'uploaded' : String(body?.outcome ?? body?.consent)
    const allowed: Record<string, string[]> = {
      requested: ['accepted', 'declined', 'granted', 'denied', 'unsupported'],
      accepted: ['completed', 'failed'],
      granted: ['uploaded'],
    }
    if (!allowed[command.state]?.includes(next)) return { status: 409, code: 'CommandAlreadyResolved' }
    command.state = next
    if (next === 'uploaded') {
      uploads.set(id, bytes)
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      return { status: 201, body: { requestId: id, state: next, byteLength: bytes.length, sha256 } }
    }
    if (next === 'granted') command.expiresAtMs = now() + lifetimeMs
    const expiresAt = new Date(command.expiresAtMs).toISOString()
    const upload = next === 'granted' && { maxBytes: 5_242_880, contentTypes: ['image/png'], expiresAt }
    return { status: 200, body: { commandId: id, requestId: id, state: next, ...(upload && { upload }) } }
  }
}
