import { createRouterTransport } from '@connectrpc/connect'
import { expect, it } from 'vitest'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { refusal } from '../test/core-answers.ts'
import { createTestCore } from '../test/test-core.ts'
import { startTestGateway } from '../test/test-gateway.ts'

it('stops mails by the link of a mail, without a login, in its language, and only with POST', async () => {
  const stopped: string[] = []
  const core = createTestCore()
  core.transport = createRouterTransport(({ service }) =>
    service(MessagingService, {
      stopMails({ token }) {
        if (token !== 'k1.a-_b') throw refusal('NotFound')
        stopped.push(token)
        return {}
      },
    }),
  )
  const { url } = await startTestGateway({ cores: [core] })
  const page = await fetch(`${url}/mail/ar/k1.a-_b`)
  expect([page.status, page.headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(await page.text()).toMatch(/^<!doctype html><html lang="ar" dir="rtl">.*<form method="post"><button>/)
  expect(stopped).toEqual([])

  // A mailbox posts the first form, a browser the second (RFC 8058).
  const bodies = [new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }), new FormData(), '']
  for (const body of bodies) {
    const answer = await fetch(`${url}/mail/de/k1.a-_b`, { method: 'POST', body })
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('keine weiteren E-Mails')])
  }
  expect(stopped).toHaveLength(3)
  expect((await fetch(`${url}/mail/en/other`, { method: 'POST' })).status).toBe(404)
  expect((await fetch(`${url}/mail/en/k1.a-_b`, { method: 'POST', body: 'x'.repeat(5_000) })).status).toBe(413)
  const odd = await fetch(`${url}/mail/${encodeURIComponent('"><script>')}/x`)
  expect(await odd.text()).not.toContain('<script>')
})
