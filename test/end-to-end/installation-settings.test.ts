import { create, type MessageInitShape, toJson } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { InstallationSchema, UpdateInstallationRequestSchema } from '#proto/workspace/v1/workspace_pb.js'
import { startLocalStack } from '../support/local-stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()

/** Every setting of an installation, with a value that differs from its default. */
const settings = (origins: string[]) =>
  ({
    enabled: true,
    name: 'Every website',
    origins: [...origins, 'https://*.every.example'],
    appearance: {
      title: 'Every',
      translations: { de: { title: 'Jede' }, fr: { openingReplies: { texts: ['Où est ma commande ?'] } } },
      logoUrl: 'https://shop.example/logo.png',
      openingReplies: { texts: ['Where is my order?', 'A person, please'] },
    },
    capabilities: { messageRetryRoute: true, preChatForm: true },
    defaultLocale: 'de',
    forms: { preChat: { fields: [{ name: 'email', label: 'E-mail', type: 'email', required: true, maxLength: 99 }] } },
    availability: { mode: 'away', timeZone: 'Europe/Vienna' },
    consent: { required: true, policyUrl: 'https://shop.example/privacy', policyVersion: '1' },
    unseenAfterMinutes: 30,
    mailUnseenAnswers: false,
  }) satisfies MessageInitShape<typeof UpdateInstallationRequestSchema>

const names = UpdateInstallationRequestSchema.fields.map(({ localName }) => localName)

it('every setting of an installation reaches the console and the widget', async () => {
  const stack = await startLocalStack({ database })
  const { siteKey, origin } = stack.demo
  const sent = settings([origin])
  expect(names.filter((name) => !['siteKey', 'idempotencyKey'].includes(name)).sort()).toEqual(Object.keys(sent).sort())

  const { workspaces } = stack.operator()
  await workspaces.updateInstallation({ siteKey, ...sent })
  const { installations } = await workspaces.listInstallations({ workspaceId: stack.demo.workspaceId })
  const found = installations.find(({ publicSiteKey }) => publicSiteKey === siteKey)!
  const wanted = create(InstallationSchema, sent)
  expect(toJson(InstallationSchema, found)).toMatchObject(toJson(InstallationSchema, wanted) as object)

  const visitor = await stack.newVisitor()
  const config = async () => (await visitor.call('GET', `/config/${siteKey}`)).body
  await until('the change', async () => (await config()).appearance.title === 'Every')
  expect(await config()).toMatchObject({
    locale: { default: 'de' },
    appearance: sent.appearance,
    capabilities: sent.capabilities,
    forms: sent.forms,
    availability: { online: false },
    consent: sent.consent,
  })

  const setReplies = (texts: string[]) =>
    workspaces.updateInstallation({ siteKey, appearance: { openingReplies: { texts } } })
  const invalid = [['1', '2', '3', '4', '5', '6'], ['twice', 'twice'], ['x'.repeat(81)], ['two\nlines'], [' ']]
  for (const texts of invalid) await expect(setReplies(texts), texts.join()).rejects.toThrow('ValidationFailed')
  await setReplies([])
  await until('the removal', async () => (await config()).appearance.openingReplies?.texts.length === 0)
  expect((await config()).appearance.translations.fr).toEqual(sent.appearance.translations.fr)
})
