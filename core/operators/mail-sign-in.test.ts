import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createClient } from '@connectrpc/connect'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { ConsoleService } from '#proto/console/v1/console_pb.js'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { keepLanguage } from '../notices/operator-choices.ts'
import { startTestCores, type TestCores } from '../test/cores.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'
import { createWorkspace } from '../workspaces/workspaces.ts'
import { inviteOperator, removeOperator } from './accounts.ts'
import { type Member, operatorLanguages } from './model.ts'
import { addMember, findMember, keepProvidedMember, operatorTextsOf, scopesOfRole } from './teams.ts'

const database = testDatabase()
/** Accepted mails, as the SMTP server received them. */
let mails: { to: string[]; text: string }[] = []
const server = new SMTPServer({
  authOptional: true,
  disabledCommands: ['STARTTLS'],
  onData(stream, { envelope }, done) {
    let text = ''
    stream.on('data', (chunk) => (text += chunk))
    stream.on('end', () => {
      const plain = text
        .replaceAll('=\r\n', '')
        .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
      mails.push({ to: envelope.rcptTo.map(({ address }) => address), text: plain })
      done()
    })
  },
})
let cores: TestCores
const url = 'https://console.shop.example'

beforeEach(async () => {
  mails = []
  if (cores) return
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  const env = { SMTP_URL: `smtp://127.0.0.1:${port}`, SMTP_FROM: 'Shop <desk@shop.example>', PUBLIC_URL: url }
  cores = await startTestCores(database, { env })
})
afterAll(async () => {
  await cores.stop()
  await new Promise<void>((resolve) => server.close(resolve))
})

async function gateway() {
  const authorization = `Bearer ${await accessOf(cores.core).issue({ subject: 'gateway', scopes: ['visitors:act'] })}`
  const transport = transportTo(cores.core)
  return createClient(ConsoleService, {
    unary: (method, signal, timeoutMs, _header, input) =>
      transport.unary(method, signal, timeoutMs, { authorization }, input),
    stream: transport.stream,
  })
}

async function newAccount(mail: string, language: Member['language'] = 'en') {
  const { workspaceId } = await createWorkspace(cores.core, 'Shop')
  const account = { id: `op_${mail}`, name: 'Ada', mail, role: 'owner', language } as const
  const member = await addMember(cores.core, workspaceId, account)
  return { workspaceId, member }
}

const caller = { tokenId: '', subject: 'op_x', scopes: new Set<string>(), expiresAt: 0 }
const secretIn = ({ text }: { text: string }) => new RegExp(`${url}/console/#sign-in=([\\w-]{43})\\s`).exec(text)![1]!
const signIn = async (value: string, displayName?: string) =>
  (await gateway()).signIn({ credential: { case: 'linkSecret', value }, displayName })

describe('a mailed sign-in link', () => {
  it('goes to the address of the account, whatever its case, and works once, within ten minutes', async () => {
    await newAccount('ada@example.org')
    await (await gateway()).mailSignInLink({ mail: ' ADA@Example.org ' })
    await until('the mail', () => mails.length === 1)
    expect(mails[0]!.to).toEqual(['ada@example.org'])
    const secret = secretIn(mails[0]!)
    expect((await signIn(secret)).session).toMatchObject({ displayName: 'Ada', account: true })
    await expect(signIn(secret)).rejects.toThrow('Unauthenticated')

    await (await gateway()).mailSignInLink({ mail: 'ada@example.org' })
    await until('the next mail', () => mails.length === 2)
    cores.advance(601)
    await expect(signIn(secretIn(mails[1]!))).rejects.toThrow('Unauthenticated')
  })

  it('is sent at most three times while none is used, and the answer is the same for an unknown address', async () => {
    await newAccount('bea@example.org')
    const client = await gateway()
    const answers = []
    for (const mail of ['bea@example.org', 'nobody@example.org', 'no address', 'bea@example.org,eve@example.org'])
      for (let turn = 0; turn < 5; turn += 1) answers.push(JSON.stringify(await client.mailSignInLink({ mail })))
    expect(new Set(answers).size).toBe(1)
    // A later request for another account shows that all earlier ones are done.
    await newAccount('last@example.org')
    await client.mailSignInLink({ mail: 'last@example.org' })
    await until('the last mail', () => mails.some(({ to }) => to[0] === 'last@example.org'))
    expect(mails.filter(({ to }) => to[0] === 'bea@example.org')).toHaveLength(3)
    expect(mails).toHaveLength(4)
  })

  it('is not sent to removed accounts, nor to those of the identity provider', async () => {
    const { workspaceId } = await newAccount('carl@example.org')
    const leaver = { id: 'op_lea', name: 'Lea', mail: 'lea@example.org', role: 'viewer' } as const
    await addMember(cores.core, workspaceId, leaver)
    await removeOperator(cores.core, { ...caller, scopes: new Set(scopesOfRole.owner) }, workspaceId, 'op_lea')
    await keepProvidedMember(cores.core, workspaceId, { id: 'sub', name: 'Pia', mail: 'pia@example.org' })
    for (const mail of ['lea@example.org', 'pia@example.org', 'carl@example.org'])
      await (await gateway()).mailSignInLink({ mail })
    await until('the mail', () => mails.some(({ to }) => to[0] === 'carl@example.org'))
    expect(mails).toHaveLength(1)
  })
})

describe('an invitation', () => {
  it('is mailed to its address, and begins with the public address of the console', async () => {
    const { workspaceId } = await newAccount('dora@example.org')
    const owner = { ...caller, scopes: new Set(scopesOfRole.owner) }
    const invited = await inviteOperator(cores.core, owner, { workspaceId, role: 'viewer', mail: 'vera@example.org' })
    expect(invited.mailed).toBe(true)
    await until('the mail', () => mails.length === 1)
    expect(mails[0]!.to).toEqual(['vera@example.org'])
    expect(secretIn(mails[0]!)).toBe(invited.secret)
  })

  it.each([
    ['Chef@groß.example', 'chef@groß.example', 'chef@gross.example'],
    ['a@ΒΌΛΟΣ-1.example', 'a@βόλοσ-1.example', 'a@βόλος-1.example'],
    ['ısparta@kunde.example', 'ısparta@kunde.example', 'isparta@kunde.example'],
  ])('to %s reaches only this address, and so do the links of its account', async (mail, recipient, similar) => {
    const { workspaceId } = await newAccount(`owner of ${recipient}`)
    const owner = { ...caller, tokenId: 'tok_x', scopes: new Set(scopesOfRole.owner) }
    await inviteOperator(cores.core, owner, { workspaceId, role: 'viewer', mail })
    await until('the invitation', () => mails.length === 1)
    await signIn(secretIn(mails[0]!), 'Chef')
    const client = await gateway()
    await client.mailSignInLink({ mail: similar })
    await client.mailSignInLink({ mail: ` ${mail} ` })
    await until('the sign-in link', () => mails.length === 2)
    expect(mails.map(({ to }) => to)).toEqual([[recipient], [recipient]])
    expect((await signIn(secretIn(mails[1]!))).session).toMatchObject({ displayName: 'Chef' })
    // In capitals both addresses are the same, so the second one counts as taken.
    const again = inviteOperator(cores.core, owner, { workspaceId, role: 'viewer', mail: similar })
    await expect(again).rejects.toThrow('ValidationFailed')
  })

  it('is in the language of the owner who invites, and a sign-in link in that of its account', async () => {
    const { workspaceId, member } = await newAccount('erna@example.org', 'de')
    const owner = { ...caller, subject: member.id, scopes: new Set(scopesOfRole.owner) }
    await inviteOperator(cores.core, owner, { workspaceId, role: 'viewer', mail: 'vera@example.org' })
    await until('the invitation', () => mails.length === 1)
    await (await gateway()).mailSignInLink({ mail: 'erna@example.org' })
    await until('the sign-in link', () => mails.length === 2)
    expect(mails.map(({ text }) => /^Subject: (.*)$/m.exec(text)![1]!.trim())).toEqual([
      'Ihre Einladung zu Shop',
      'Anmelden bei Shop',
    ])
    expect(mails.map(secretIn)).toHaveLength(2)
  })
})

it('every text for operators has its placeholders and links in every language', () => {
  const placeholders = (text: string) => text.match(/(#[\w-]+=)?\{\w+\}/g)?.sort() ?? []
  for (const language of operatorLanguages)
    for (const [key, text] of Object.entries(operatorTextsOf()))
      expect(placeholders(operatorTextsOf({ language })[key as 'new']), key).toEqual(placeholders(text))
})

it('an account of the identity provider keeps its language when it signs in again', async () => {
  const { workspaceId } = await newAccount('fred@example.org')
  const provided = { id: 'sub', name: 'Pia', mail: 'pia@example.org' }
  await keepProvidedMember(cores.core, workspaceId, provided)
  await keepLanguage(cores.core, workspaceId, (await findMember(cores.core, workspaceId, 'sub'))!, 'de')
  await keepProvidedMember(cores.core, workspaceId, { ...provided, name: 'Pia L.' })
  expect(await findMember(cores.core, workspaceId, 'sub')).toMatchObject({ name: 'Pia L.', language: 'de' })
})
