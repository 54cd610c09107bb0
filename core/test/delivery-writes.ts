import { defaultPolicy } from '../deliveries/subscription-model.ts'
import { createSubscription, rotateSecret } from '../deliveries/subscriptions.ts'
import type { TestCores } from './cores.ts'
import {
  bareScene,
  collectionsOf,
  desk,
  destinationUrl,
  failedScene,
  fieldNamed,
  idempotencyOf,
  leadScene,
  type Scene,
  type Write,
} from './operator-scenes.ts'

const subscriptionOf = async (cores: TestCores, { subscriptionId }: Scene) =>
  (await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId }))!

async function hookScene(cores: TestCores): Promise<Scene> {
  const { core, workspaceId } = cores
  const { subscriptionId } = await createSubscription(
    core,
    {
      resource: 'hook',
      workspaceId,
      destinationUrl,
      mappedFields: [],
      automatic: false,
      policy: { ...defaultPolicy, types: ['message.visitor'] },
    },
    desk,
  )
  return { ...(await bareScene()), subscriptionId }
}

/** The writes to leads, their destinations and deliveries, and to event hooks. */
export const deliveryWrites: Record<string, Write> = {
  'LeadService.CaptureLead': {
    isKeyed: true,
    scene: bareScene,
    async call({ leads }, { name }, key, input) {
      const { leadId } = await leads.captureLead({ source: name, fields: { input }, ...idempotencyOf(key) })
      return { id: leadId }
    },
    effects: (cores, { name }) => collectionsOf(cores).leads.countDocuments({ source: name }),
  },
  'LeadService.CreateSubscription': {
    isKeyed: true,
    scene: bareScene,
    async call({ leads }, { name }, key, input) {
      const mappedFields = [input, fieldNamed(name)]
      const made = await leads.createSubscription({ destinationUrl, mappedFields, ...idempotencyOf(key) })
      return { id: made.subscriptionId, secret: made.secret }
    },
    effects: (cores, { name }) =>
      collectionsOf(cores).leadSubscriptions.countDocuments({ mappedFields: fieldNamed(name) }),
  },
  'LeadService.UpdateSubscription': {
    isKeyed: true,
    scene: leadScene,
    async call({ leads }, { subscriptionId }, key, input) {
      await leads.updateSubscription({ subscriptionId, mappedFields: { names: [input] }, ...idempotencyOf(key) })
      return { id: subscriptionId }
    },
    effects: async (cores, { subscriptionId }) =>
      (await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId }))!.audit.length,
    state: async (cores, { subscriptionId }) => {
      const found = await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId })
      return [found!.mappedFields, found!.status]
    },
  },
  'LeadService.RotateSubscriptionSecret': {
    isKeyed: true,
    scene: leadScene,
    async call({ leads }, { subscriptionId }, key, input) {
      const overlapSeconds = input === 'a' ? 3600 : 60
      const made = await leads.rotateSubscriptionSecret({ subscriptionId, overlapSeconds, ...idempotencyOf(key) })
      return { id: made.subscription?.secrets[0]?.secretId, secret: made.secret }
    },
    effects: async (cores, { subscriptionId }) =>
      (await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId }))!.secrets.length,
  },
  'LeadService.ActivateSubscriptionSecret': {
    isKeyed: true,
    async scene(cores) {
      const scene = await leadScene(cores)
      await rotateSecret(cores.core, scene.subscriptionId, undefined, desk)
      return scene
    },
    async call({ leads }, { subscriptionId }, key, input) {
      const { secrets } = (await leads.getSubscription({ subscriptionId })).subscription!
      const { secretId } = secrets[input === 'a' ? 0 : 1]!
      await leads.activateSubscriptionSecret({ subscriptionId, secretId, ...idempotencyOf(key) })
      return { id: secretId }
    },
    effects: async (cores, { subscriptionId }) =>
      (await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId }))!.audit.length,
  },
  'LeadService.CreateDeliveryAttempt': {
    isKeyed: true,
    scene: leadScene,
    async call({ leads }, { leadId, subscriptionId }, key = '', input) {
      const other = input === 'a' ? {} : { leadId: (await leads.captureLead({ source: 'other' })).leadId }
      const made = await leads.createDeliveryAttempt({ leadId, ...other, subscriptionId, idempotencyKey: key })
      return { id: made.attempt?.attemptId }
    },
    effects: (cores, { subscriptionId }) => collectionsOf(cores).deliveries.countDocuments({ subscriptionId }),
  },
  'LeadService.SendTestDelivery': {
    isKeyed: true,
    scene: leadScene,
    async call({ leads }, { subscriptionId }, key = '', input) {
      const other = input === 'a' ? undefined : (await leads.createSubscription({ destinationUrl })).subscriptionId
      const made = await leads.sendTestDelivery({ subscriptionId: other ?? subscriptionId, idempotencyKey: key })
      return { id: made.attempt?.attemptId }
    },
    effects: (cores, { subscriptionId }) => collectionsOf(cores).deliveries.countDocuments({ subscriptionId }),
  },
  'LeadService.RecoverDeliveries': {
    isKeyed: true,
    scene: leadScene,
    async call({ leads }, { subscriptionId }, key, input) {
      const since = { seconds: input === 'a' ? 1n : 2n }
      const { recovery } = await leads.recoverDeliveries({ subscriptionId, since, ...idempotencyOf(key) })
      return { id: recovery?.recoveryId }
    },
    effects: async (cores, { subscriptionId }) =>
      (await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId }))!.audit.length,
  },
  'LeadService.RetryDeliveryAttempt': {
    isKeyed: true,
    scene: failedScene,
    async call({ leads }, { attemptId }, key = '', input) {
      const other = input === 'a' ? undefined : (await leads.listDeliveries({ limit: 2 })).deliveries.at(-1)
      const made = await leads.retryDeliveryAttempt({
        attemptId: other?.latestAttempt?.attemptId ?? attemptId,
        idempotencyKey: key,
      })
      return { id: made.attempt?.attemptId }
    },
    effects: async (cores, { deliveryId }) =>
      (await collectionsOf(cores).deliveries.findOne({ _id: deliveryId }))!.attempts.length,
  },
  'HookService.CreateHook': {
    isKeyed: true,
    scene: bareScene,
    async call({ hooks }, { name }, key, input) {
      const url = `${destinationUrl}?${fieldNamed(name)}`
      const eventTypes = [input === 'a' ? 'message.visitor' : 'message.agent']
      const made = await hooks.createHook({ destinationUrl: url, eventTypes, ...idempotencyOf(key) })
      return { id: made.hookId, secret: made.secret }
    },
    effects: (cores) => collectionsOf(cores).leadSubscriptions.countDocuments({ resource: 'hook' }),
  },
  'HookService.UpdateHook': {
    isKeyed: true,
    scene: hookScene,
    async call({ hooks }, { subscriptionId: hookId }, key, input) {
      const types = [input === 'a' ? 'message.agent' : 'message.bot']
      await hooks.updateHook({ hookId, eventTypes: { types }, ...idempotencyOf(key) })
      return { id: hookId }
    },
    effects: async (cores, scene) => (await subscriptionOf(cores, scene)).audit.length,
    state: async (cores, scene) => (await subscriptionOf(cores, scene)).policy,
  },
  'HookService.RotateHookSecret': {
    isKeyed: true,
    scene: hookScene,
    async call({ hooks }, { subscriptionId: hookId }, key, input) {
      const overlapSeconds = input === 'a' ? 3600 : 60
      const made = await hooks.rotateHookSecret({ hookId, overlapSeconds, ...idempotencyOf(key) })
      return { id: made.hook?.secrets[0]?.secretId, secret: made.secret }
    },
    effects: async (cores, scene) => (await subscriptionOf(cores, scene)).secrets.length,
  },
  'HookService.ActivateHookSecret': {
    isKeyed: true,
    async scene(cores) {
      const scene = await hookScene(cores)
      await rotateSecret(cores.core, scene.subscriptionId, undefined, desk)
      return scene
    },
    async call({ hooks }, { subscriptionId: hookId }, key, input) {
      const { secrets } = (await hooks.getHook({ hookId })).hook!
      const { secretId } = secrets[input === 'a' ? 0 : 1]!
      await hooks.activateHookSecret({ hookId, secretId, ...idempotencyOf(key) })
      return { id: secretId }
    },
    effects: async (cores, scene) => (await subscriptionOf(cores, scene)).audit.length,
  },
}
