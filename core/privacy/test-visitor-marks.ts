import { randomUUID } from 'node:crypto'
import type { Db } from 'mongodb'
import { imageOf } from '../../test/support/images.ts'
import { site, type TestCores } from '../test-core-context.ts'

/** Fills every field that a visitor can fill with a unique mark. */
export async function plantMarks(cores: TestCores, { verified }: { verified: boolean }) {
  const { core, workspaceId } = cores
  const marks: string[] = []
  const mark = (name: string) => {
    const text = `${name}${randomUUID().replaceAll('-', '')}`
    marks.push(text)
    return text
  }
  const page = (name: string) => ({
    url: `https://shop.example/${mark(`${name}url`)}`,
    title: mark(`${name}title`),
    referrer: `https://${mark(`${name}r`)}.example/path`,
  })
  const { content: created } = await core.sessions.create({
    publicSiteKey: cores.publicSiteKey,
    origin: site,
    clientInstanceId: mark('browser'),
    locale: 'gsw-CH',
    pageContext: page('created'),
    idempotencyKey: mark('createkey'),
  })
  let session = created
  const externalSubject = mark('sub')
  const claims = { sub: externalSubject, name: mark('name'), ctx: { [mark('key')]: mark('value') }, jti: mark('nonce') }
  if (verified) {
    // An earlier session of the person, so that this one continues its conversation.
    const first = await cores.identify(await cores.newSession(), cores.sign({ ...claims, jti: mark('firstnonce') }))
    await cores.send(first, mark('elsewhere'))
    session = await cores.identify(created, cores.sign(claims), { key: mark('identifykey') })
  }
  const { sessionId, conversationId, accessGrant } = session
  const credentials = { accessGrant, origin: site }
  await core.messages.sendAsVisitor({
    credentials,
    clientOperationId: mark('operation'),
    body: mark('body'),
    contentType: 'text',
    pageContext: page('message'),
  })
  await core.messages.sendAsAgent({ conversationId, clientOperationId: mark('agentoperation'), body: mark('answer') })
  await core.sessions.reportPage({ credentials, pageContext: page('report'), idempotencyKey: mark('pagekey') })
  await core.typing.setByVisitor(credentials, 'started')
  for (const form of ['preChat', 'offline'] as const)
    await core.leads.submitForm({ credentials, form, fields: { email: mark(form) }, idempotencyKey: mark('formkey') })
  await core.leads.capture({ workspaceId, source: 'crm', fields: { note: mark('note') }, conversationId }, undefined)
  const desk = { subject: 'desk' }
  const { content: asked } = await core.commands.requestScreenshot({ sessionId, purpose: mark('purpose') }, desk)
  const requestId = asked.commandId
  const consent = { credentials, requestId, consent: 'granted', idempotencyKey: mark('consentkey') }
  await core.commandDecisions.acknowledgeScreenshot(consent)
  const image = Buffer.concat([imageOf('image/png', 100), Buffer.from(mark('pixels').repeat(3000))])
  const upload = { credentials, requestId, contentType: 'image/png', idempotencyKey: mark('uploadkey') }
  await core.screenshots.upload(
    upload,
    (async function* () {
      yield image
    })(),
  )
  await core.commands.requestNavigation({ sessionId, url: `${site}/${mark('target')}` }, desk)
  return { session, created, externalSubject, marks }
}

/** Finds texts in every document of every collection, also in base64. */
export async function placesOfTexts(db: Db, texts: string[]): Promise<string[]> {
  const needles = texts.flatMap((text) => [Buffer.from(text), Buffer.from(Buffer.from(text).toString('base64'))])
  const places = new Set<string>()
  for (const { name } of await db.listCollections().toArray()) {
    const documents = (await db.collection(name).find({}, { raw: true }).toArray()) as unknown as Buffer[]
    for (const bytes of documents) {
      for (const [index, needle] of needles.entries())
        if (bytes.includes(needle)) places.add(`${name}: ${texts[index >> 1]}`)
    }
  }
  return [...places]
}
