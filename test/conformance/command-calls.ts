import { MongoClient } from 'mongodb'
import { expect } from 'vitest'
import type { TestDatabase } from '../support/test-database.ts'
import type { Visitor } from '../support/visitor.ts'
import { bearer } from './client.ts'
import type { Suite } from './suite.ts'

type Kind = 'navigation' | 'screenshots'

/** Returns the path at which a page acknowledges a command. */
export const pathOf = (kind: Kind, id: string) => `/commands/${kind}/${id}/acknowledgements`

/** Returns calls of agents and visitors that concern commands. */
export function createCommandCalls(suite: () => Suite, database: TestDatabase) {
  async function request(kind: Kind, { session: { sessionId } }: Visitor): Promise<string> {
    const { commands } = suite().roomy.operator
    const { origin } = suite().roomy.stack.demo
    const { command } =
      kind === 'navigation'
        ? await commands.requestNavigation({ sessionId, url: `${origin}/pricing` })
        : await commands.requestScreenshot({ sessionId, purpose: 'To see it' })
    return command!.commandId
  }

  const cancel = (commandId: string) => suite().roomy.operator.commands.cancelCommand({ commandId })

  /** Sets the expiry of a command to now in the database, so that the test need not wait 120 seconds. */
  async function expire(commandId: string) {
    const mongo = new MongoClient(database.uri)
    const commands = mongo.db(database.name).collection<{ _id: string }>('commands')
    const { matchedCount } = await commands.updateOne({ _id: commandId }, { $set: { expiresAt: new Date() } })
    expect(matchedCount).toBe(1)
    await mongo.close()
  }

  const bodyOf = (kind: Kind, word: string) => (kind === 'navigation' ? { outcome: word } : { consent: word })

  const acknowledge = (visitor: Visitor, kind: Kind, id: string, word: string) =>
    suite().roomy.client.call('POST', pathOf(kind, id), { headers: bearer(visitor), body: bodyOf(kind, word) })

  const expectRejection = (code: string, visitor: Visitor, kind: Kind, id: string, word: string) =>
    suite().roomy.client.fails(code, 'POST', pathOf(kind, id), { headers: bearer(visitor), body: bodyOf(kind, word) })

  const uploadRequest = (visitor: Visitor, body: Uint8Array, contentType = 'image/png') => ({
    headers: { ...bearer(visitor), 'content-type': contentType },
    body,
  })
  const upload = (visitor: Visitor, id: string, body: Uint8Array, contentType?: string) =>
    suite().roomy.client.call('POST', `/commands/screenshots/${id}/upload`, uploadRequest(visitor, body, contentType))
  const expectUploadRejection = (code: string, visitor: Visitor, id: string, body: Uint8Array, contentType?: string) =>
    suite().roomy.client.fails(
      code,
      'POST',
      `/commands/screenshots/${id}/upload`,
      uploadRequest(visitor, body, contentType),
    )

  async function requestGranted(visitor: Visitor) {
    const id = await request('screenshots', visitor)
    expect((await acknowledge(visitor, 'screenshots', id, 'granted')).status).toBe(200)
    return id
  }

  return { request, cancel, expire, acknowledge, expectRejection, upload, expectUploadRejection, requestGranted }
}
