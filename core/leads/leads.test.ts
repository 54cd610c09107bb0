import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import type { RunningCore } from '../context.ts'
import { closeConversation } from '../conversations/assignments.ts'
import { findConversation, listConversationEvents } from '../conversations/conversation-access.ts'
import { countQueues, inboxOf, listConversations } from '../conversations/inbox.ts'
import { inboxWatchOf } from '../conversations/inbox-watch.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import { captureLead, submitForm } from '../deliveries/lead-capture.ts'
import { codeOf, type TestVisitor, testCores } from '../test/cores.ts'
import { flushFeed } from '../test/feed.ts'
import type { FormField } from '../workspaces/model.ts'
import { updateInstallation } from '../workspaces/workspaces.ts'
import { listLeads } from './leads.ts'

const cores = testCores({ count: 2, started: false })
let visitor: TestVisitor

const form: FormField[] = [
  { name: 'name', label: 'Your name', type: 'text', required: true, maxLength: 20 },
  { name: 'mail', label: 'Mail', type: 'email', required: true, maxLength: 254 },
  { name: 'phone', label: 'Phone', type: 'tel', required: false, maxLength: 32 },
  { name: 'note', label: 'Anything else?', type: 'textarea', required: false, maxLength: 100 },
]

beforeAll(async () => {
  visitor = await cores.newVisitor(
    await cores.newSite({ capabilities: { preChatForm: true }, forms: { preChat: form, offline: form } }),
  )
})

const good = { name: 'Mia', mail: 'mia@example.org' }
const submit = (core: RunningCore, fields: Record<string, string>, idempotencyKey: string) =>
  submitForm(core, { credentials: visitor.credentials, form: 'preChat', fields, idempotencyKey })

describe('a form', () => {
  it('creates one lead when it is submitted concurrently on two cores with one idempotency key', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => submit(cores.cores[index % 2]!, good, 'k1')),
    )
    expect(new Set(answers.map(({ formSubmissionId }) => formSubmissionId)).size).toBe(1)
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
    const leads = await cores.core.database.collections.leads.find({ conversationId: visitor.conversationId }).toArray()
    expect(leads).toMatchObject([
      {
        workspaceId: visitor.workspaceId,
        source: 'pre-chat-form',
        fields: good,
        formSubmissionId: answers[0]!.formSubmissionId,
      },
    ])
    expect(leads[0]!._id).toMatch(/^lead_/)
  })

  it('is rejected if its idempotency key was used with other fields', async () => {
    await submit(cores.core, good, 'k2')
    expect(await codeOf(submit(cores.other, { ...good, name: 'Max' }, 'k2'))).toBe('IdempotencyConflict')
  })

  it.each<[string, Record<string, string>, { path: string; rule: string }[]]>([
    ['an unknown field', { ...good, admin: 'yes' }, [{ path: '/fields/admin', rule: 'additionalProperties' }]],
    [
      'a name with pointer characters',
      { ...good, 'a/b~c': '' },
      [{ path: '/fields/a~1b~0c', rule: 'additionalProperties' }],
    ],
    [
      'a name from the prototype',
      { ...good, constructor: 'x' },
      [{ path: '/fields/constructor', rule: 'additionalProperties' }],
    ],
    [
      'nothing',
      {},
      [
        { path: '/fields/name', rule: 'required' },
        { path: '/fields/mail', rule: 'required' },
      ],
    ],
    ['only white space', { ...good, name: '  ' }, [{ path: '/fields/name', rule: 'minLength' }]],
    ['too long a value', { ...good, name: 'x'.repeat(21) }, [{ path: '/fields/name', rule: 'maxLength' }]],
    ['no mail address', { ...good, mail: 'mia at home' }, [{ path: '/fields/mail', rule: 'format' }]],
    ['no telephone number', { ...good, phone: 'call me' }, [{ path: '/fields/phone', rule: 'format' }]],
    [
      'a line break in a single-line field',
      { ...good, name: 'Mia\nBcc: x' },
      [{ path: '/fields/name', rule: 'pattern' }],
    ],
    ['a control character', { ...good, note: 'a\u0000b' }, [{ path: '/fields/note', rule: 'pattern' }]],
  ])('is rejected with %s, and the error has the path of the field but not its value', async (_, fields, issues) => {
    await expect(submit(cores.core, fields, 'bad')).rejects.toMatchObject({ code: 'ValidationFailed', issues })
  })

  it('gets its first answer again after the form has changed, and another form is validated', async () => {
    const site = await cores.newSite({ capabilities: { preChatForm: true }, forms: { preChat: form } })
    const { credentials } = await cores.newVisitor(site)
    const submission = { credentials, form: 'preChat' as const, fields: good, idempotencyKey: 'k' }
    const first = await submitForm(cores.core, submission)
    const forms = { preChat: [{ ...form[0]!, name: 'other', required: true }] }
    await updateInstallation(cores.core, site.publicSiteKey, { forms }, undefined)
    await until('the new form', async () => {
      const other = submitForm(cores.core, { ...submission, idempotencyKey: randomUUID() })
      return (await codeOf(other)) === 'ValidationFailed'
    })
    expect(await submitForm(cores.core, submission)).toEqual({ ...first, replayed: true })
    expect(await codeOf(submitForm(cores.core, { ...submission, fields: {} }))).toBe('IdempotencyConflict')
  })

  it('is accepted if it omits optional fields and has line breaks in a textarea', async () => {
    expect(await submit(cores.core, { ...good, phone: '', note: 'one\ntwo' }, 'k3')).toMatchObject({ replayed: false })
  })

  it('is rejected if it is defined but the installation does not advertise it', async () => {
    const submission = { credentials: visitor.credentials, form: 'offline' as const, fields: good, idempotencyKey: 'k' }
    expect(await codeOf(submitForm(cores.core, submission))).toBe('RouteNotAdvertised')
  })

  it.each<[string, FormField[], { path: string; rule: string }]>([
    ['two fields of one name', [form[0]!, form[0]!], { path: '/forms/preChat/fields/1/name', rule: 'uniqueItems' }],
    [
      'an unknown field type',
      [{ ...form[0]!, type: 'file' as 'text' }],
      { path: '/forms/preChat/fields/0/type', rule: 'enum' },
    ],
    ['a name with a slash', [{ ...form[0]!, name: 'a/b' }], { path: '/forms/preChat/fields/0/name', rule: 'pattern' }],
    [
      'a length beyond the limit',
      [{ ...form[0]!, maxLength: 4001 }],
      { path: '/forms/preChat/fields/0/maxLength', rule: 'maximum' },
    ],
  ])('cannot be defined with %s', async (_, preChat, issue) => {
    await expect(
      updateInstallation(cores.core, visitor.publicSiteKey, { forms: { preChat } }, undefined),
    ).rejects.toMatchObject({ issues: [issue] })
  })

  it('leaves the definitions of other forms unchanged when it is redefined', async () => {
    const site = await cores.newSite({ forms: { preChat: form, offline: form } })
    const updated = await updateInstallation(
      cores.other,
      site.publicSiteKey,
      { forms: { preChat: [form[0]!] } },
      undefined,
    )
    expect(updated.forms).toEqual({ preChat: [form[0]], offline: form })
  })
})

describe('a conversation with a form and no message', () => {
  async function submitted() {
    const site = await cores.newSite({ capabilities: { preChatForm: true }, forms: { preChat: form, offline: form } })
    const { workspaceId, conversationId, credentials, sessionId } = await cores.newVisitor(site)
    const submission = { credentials, form: 'preChat' as const, fields: good, idempotencyKey: 'k' }
    return { workspaceId, conversationId, sessionId, submission }
  }

  it('is in the lists, the counts and the watched inbox of every core, once, with its session', async () => {
    const { workspaceId, conversationId, sessionId, submission } = await submitted()
    const seen: string[] = []
    const leave = inboxWatchOf(cores.other).add({
      workspaceId,
      changed: ({ events }) => seen.push(...events.map(({ type }) => type)),
      noted() {},
      grew() {},
      removed() {},
      ready() {},
    })
    await Promise.all([...cores.cores, ...cores.cores].map((core) => submitForm(core, submission)))
    await until('the watched inbox has the form', () => seen.includes('form.submitted'))
    leave()
    for (const core of cores.cores) {
      await flushFeed(core)
      const { conversations } = await listConversations(core, { workspaceId, unanswered: true })
      expect(conversations).toMatchObject([{ conversationId, lastSessionId: sessionId, status: 'open' }])
      expect(await countQueues(core, workspaceId, { name: 'Ada' })).toEqual({
        unanswered: 1,
        mine: 0,
        unassigned: 1,
        open: 1,
      })
    }
    const caller = { workspaceId, scopes: new Set<string>() }
    const { events } = await listConversationEvents(cores.core, conversationId, { afterSequence: 0 }, caller)
    expect(events.map(({ type }) => type)).toEqual(['form.submitted'])
  })

  it('is listed by the next core if the one that stored the form died before its event', async () => {
    const { workspaceId, conversationId, submission } = await submitted()
    const leads = cores.core.database.collections.leads
    await submitForm(cores.core, submission)
    await cores.core.database.collections.events.deleteMany({ conversationId })
    await cores.core.database.collections.conversations.updateOne(
      { _id: conversationId },
      { $unset: { lastMessageAt: '', lastSequence: '', lastSession: '', queue: '' } },
    )
    await leads.updateOne({ conversationId }, { $set: { unannounced: true } })
    await flushFeed(cores.other)
    const { conversations } = await listConversations(cores.other, { workspaceId, unanswered: true })
    expect(conversations).toMatchObject([{ conversationId }])
  })

  it('is open again if it was closed, and waits no more after an answer', async () => {
    const { workspaceId, conversationId, submission } = await submitted()
    const { core } = cores
    await closeConversation(core, conversationId, workspaceId)
    await submitForm(core, submission)
    await inboxOf(core).noted()
    expect(await findConversation(core, conversationId, workspaceId)).toMatchObject({ status: 'open' })
    await sendAsAgent(
      core,
      { conversationId, clientOperationId: randomUUID(), body: 'Hello', agent: { displayName: 'Ada' } },
      workspaceId,
    )
    expect((await listConversations(core, { workspaceId, unanswered: true })).conversations).toEqual([])
  })
})

describe('a lead captured by another service', () => {
  it('is found by its e-mail address or telephone number in any spelling, in its workspace only', async () => {
    const { workspaceId } = await cores.newSite()
    const capture = (fields: Record<string, string>, at = workspaceId) =>
      captureLead(cores.core, { workspaceId: at, source: 'crm', fields }, undefined)
    const mail = await capture({ Email: 'Zoe@Example.org' })
    const phone = await capture({ phone: '+49 (30) 901820' })
    await capture({ mail: 'zoe@example.org' }, visitor.workspaceId)
    const found = async (contact: string) =>
      (await listLeads(cores.other, { workspaceId, contact })).leads.map(({ leadId }) => leadId)
    expect(await found(' zoe@EXAMPLE.org')).toEqual([mail])
    expect(await found('0049 30 901820')).toEqual(await found('+4930901820'))
    expect(await found('+4930901820')).toEqual([phone])
    expect(await found('nobody@example.org')).toEqual([])
    await expect(found('zoe')).rejects.toMatchObject({ issues: [{ path: '/contact', rule: 'format' }] })
  })

  it('is stored in its workspace, and each call creates another lead', async () => {
    const { workspaceId, conversationId } = visitor
    const lead = { workspaceId, source: 'crm-import', fields: { name: 'Mia' }, conversationId }
    const ids = [await captureLead(cores.core, lead, workspaceId), await captureLead(cores.core, lead, undefined)]
    expect(new Set(ids).size).toBe(2)
    expect(await cores.core.database.collections.leads.countDocuments({ source: 'crm-import' })).toBe(2)
  })

  it('is rejected for another workspace, for a conversation of another workspace, and with invalid fields', async () => {
    const { workspaceId, conversationId } = visitor
    const other = await cores.newSite()
    const lead = { workspaceId, source: 's', fields: {} }
    const notFound = { code: 'NotFound' }
    await expect(captureLead(cores.core, lead, other.workspaceId)).rejects.toMatchObject(notFound)
    await expect(captureLead(cores.core, { ...lead, workspaceId: 'ws_none' }, undefined)).rejects.toMatchObject(
      notFound,
    )
    await expect(
      captureLead(cores.core, { ...lead, workspaceId: other.workspaceId, conversationId }, undefined),
    ).rejects.toMatchObject(notFound)
    await expect(captureLead(cores.core, { ...lead, fields: { 'a b': 'x' } }, undefined)).rejects.toMatchObject({
      issues: [{ path: '/fields', rule: 'propertyNames' }],
    })
  })
})
