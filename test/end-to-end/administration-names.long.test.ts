import { expect, it } from 'vitest'
import { adminHere } from '../support/admin.ts'
import { useLocalStack } from '../support/local-stack.ts'

const stack = useLocalStack()

it('the administration command accepts the name of a workspace, and the name or host of a destination, if it is unique', async () => {
  const create = async (name: string) => (await stack.operator().workspaces.createWorkspace({ name })).workspace!
  const { workspaceId } = await create('Corner shop')
  for (const _ of [1, 2]) await create('Twin')
  const { leads } = stack.operator()
  const url = 'https://1.1.1.1/hooks?a=1'
  for (const destinationUrl of [url, 'https://8.8.8.8/', 'https://8.8.8.8/b'])
    await leads.createSubscription({ workspaceId, destinationUrl, mappedFields: ['name'] })
  const { leadId } = await leads.captureLead({ workspaceId, source: 'api', fields: { name: 'Ada' } })
  const [first] = (await leads.listSubscriptions({ workspaceId })).subscriptions.toReversed()
  await leads.createDeliveryAttempt({ leadId, subscriptionId: first!.subscriptionId, idempotencyKey: 'names' })

  const admin = (args: readonly string[]) => adminHere([...args], { DATA_DIR: stack.dataDir })
  const list = (...more: string[]) => admin(['deliveries', 'list', '--workspace', 'Corner shop', ...more])
  for (const subscription of ['1.1.1.1', 'https://1.1.1.1', 'https://1.1.1.1/••••', first!.subscriptionId]) {
    const { stdout, stderr } = await list('--subscription', subscription)
    expect([stdout, stderr]).toEqual([
      expect.stringMatching(/dlv_\w+ +pending +attempt 1 +1\.1\.1\.1 +lead\.ready-for-delivery +Ada\n$/),
      '',
    ])
  }
  const named = ['subscriptions', 'update', '--subscription', first!.subscriptionId, '--name', 'CRM']
  expect((await admin(named)).code).toBe(0)
  expect((await list('--subscription', 'CRM')).stdout).toMatch(/dlv_\w+ +pending +attempt 1 +CRM +lead/)
  const recovery = ['--since', '2026-01-01T00:00:00Z']
  for (const [args, message] of [
    [['workspaces', 'changes', '--workspace', 'Nowhere'], 'no workspace is named "Nowhere"'],
    [
      ['workspaces', 'changes', '--workspace', 'Twin'],
      'several workspaces are named "Twin"; use one of their ids: ws_',
    ],
    [['deliveries', 'list', '--workspace', 'Corner shop', '--subscription', 'x'], 'no subscription is named "x"'],
    [['deliveries', 'list', '--workspace', 'Corner shop', '--subscription', url], `no subscription is named "${url}"`],
    [
      ['deliveries', 'recover', '--workspace', 'Corner shop', '--subscription', '8.8.8.8', ...recovery],
      'several subscriptions are named "8.8.8.8"; use one of their ids: sub_',
    ],
  ] as const) {
    const ended = await admin([...args])
    expect([args, ended.code, ended.stderr]).toEqual([args, 2, expect.stringContaining(message)])
  }
  const recovered = [...recovery, '--workspace', 'Corner shop', '--subscription', '1.1.1.1']
  expect((await admin(['deliveries', 'recover', ...recovered])).code).toBe(0)
})
