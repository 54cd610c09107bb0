import { expect } from 'vitest'
import type { AssertionChange } from '../support/assertion.ts'
import { bearer } from './client.ts'
import { assertionOf } from './identity.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of contract section 7: what a rejection says about the rejected request. */
export function rejectionRules(suite: () => Suite): void {
  const assertions: [string, AssertionChange][] = [
    ['audience', { claims: { aud: 'pk_sesame' } }],
    ['signature', { header: { kid: 'sesame' } }],
    ['lifetime', { claims: { iat: 1_000_000, exp: 9_999_999 } }],
    ['nonce', { claims: { jti: 'sesame' } }],
    ['subject', { claims: { sub: '' } }],
    ['type', { header: { typ: 'sesame' } }],
    ['clock', { claims: { nbf: 99_999_999_999 } }],
    ['context', { claims: { ctx: { sesame: { open: true } } } }],
  ]
  for (const [name, { claims, ...change }] of assertions)
    rule(
      'C7.11',
      async () => {
        const { client } = suite().roomy
        const assertion = assertionOf(suite(), claims, change)
        const request = { headers: bearer(await client.visitor()), body: { assertion } }
        const { body } = await client.fails('IdentityAssertionInvalid', 'POST', '/sessions/identify', request)
        expect(body.issues).toEqual([{ path: '/assertion', rule: name }])
        expect(JSON.stringify(body)).not.toMatch(/sesame|9999/)
      },
      name,
    )

  const calls: [string, string, object, string, string][] = [
    [
      'SessionService/BanVisitor',
      'session',
      { sessionId: 'ses_1', addressBanSecond: 9999 },
      '/addressBanSecond',
      'additionalProperties',
    ],
    [
      'WorkspaceService/UpdateInstallation',
      'workspace',
      { siteKey: 'pk', appearance: { titel: 'sesame' } },
      '/appearance/titel',
      'additionalProperties',
    ],
    ['MessagingService/ListConversations', 'messaging', { status: 'SESAME' }, '/status', 'enum'],
    ['MessagingService/ListConversations', 'messaging', { status: 9999 }, '/status', 'enum'],
    ['LeadService/ListDeliveries', 'lead', { statuses: ['DELIVERY_STATUS_HELD', 'SESAME'] }, '/statuses/1', 'enum'],
  ]
  const post = async (url: string, token: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, text: await answer.text() }
  }
  for (const [method, name, request, path, issue] of calls)
    rule(
      'C7.21',
      async () => {
        const { demo, gateways, cores } = suite().roomy.stack
        const target = `/service.${name}.v1.${method}`
        const answers = [await post(`${cores[0]!.url}${target}`, demo.serviceToken, request)]
        if (demo.workspaceSession)
          answers.push(await post(`${gateways[0]!.url}/rpc${target}`, demo.workspaceSession, request))
        for (const { status, text } of answers) {
          expect(status).toBe(400)
          expect(JSON.parse(text).details[0].debug.issues).toEqual([{ path, rule: issue }])
          expect(text).not.toMatch(/sesame|9999/i)
        }
      },
      `${method} ${path} ${issue === 'enum' ? JSON.stringify(request) : ''}`.trim(),
    )
}
