import { HookService } from '#proto/hook/v1/hook_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { feedEventTypes } from '../../contract/event-kinds.ts'
import { leadEventTypes } from '../../contract/lead-event-types.ts'
import { call, choice, command, type Group, many, must, number, text, whether } from '../command.ts'
import { changedName, deletion, name, overlap, page, workspace } from './flags.ts'

const leadRpc = LeadService.method
const hookRpc = HookService.method

export const namedSubscription = {
  subscription: must(
    text('the id of the subscription or hook, or the name or host of the subscription’s destination', 'subscriptionId'),
  ),
  workspace: text('the subscription’s workspace, if it is given by name or host', 'workspaceId'),
}
const namedHook = {
  hook: must(text('the hook’s id, its name, or the host of its destination', 'hookId')),
  workspace: text('the hook’s workspace, if it is given by name or host', 'workspaceId'),
}

const url = text(
  'the destination: https, at a public address or one in DELIVERY_ALLOWED_CIDRS of the cores',
  'destinationUrl',
)
const header = many({ ...text('a header of each request, `name: value`; repeatable', 'headers'), read: toHeader })
const limits = {
  rate: number('requests per second, at most', 'maxPerSecond'),
  'not-found': number(
    '404 answers in a row that disable the subscription: 1 to 100, default 5; 0 for never',
    'disableAfterNotFound',
  ),
}
const changedLimits = {
  ...limits,
  rate: { ...limits.rate, description: 'requests per second, at most; 0 for no limit' },
}
const status = choice({ enabled: SubscriptionStatus.ENABLED, disabled: SubscriptionStatus.DISABLED })(
  'enabled or disabled',
)
const pages = { limit: number('1 to 100; default 100'), page }
const secretOf = (group: string) => must(text(`the secret’s id, from \`${group} list\``, 'secretId'))

function toHeader(given: string) {
  const [name = '', ...rest] = given.split(':')
  return { name: name.trim(), ...(rest.length > 0 && { value: rest.join(':').trim() }) }
}

/** Returns the headers of an update, which replace all earlier ones. An empty text adds none. */
const changedHeaders = (headers: ReturnType<typeof toHeader>[] | undefined) =>
  headers && { headers: headers.filter(({ name, value }) => name !== '' || value !== undefined) }

const field = many(text('a field of the lead to send; `email=mail` sends it as `mail`; repeatable', 'mappedFields'))
const policy = {
  event: many(text(`an event to send: ${leadEventTypes.join(', ')}`, 'types')),
  source: many(text('only leads from pre-chat-form, offline-form or services', 'sources')),
  installation: many(text('only leads of the installation with this site key', 'installations')),
}

export const subscriptions: Group = {
  create: command(
    {
      workspace,
      url: must(url),
      name,
      field,
      header,
      automatic: whether('send every captured lead automatically'),
      ...policy,
      ...limits,
    },
    ({ leads }, { mappedFields: fields = [], types, sources, installations, ...given }) =>
      leads.createSubscription({
        ...given,
        mappedFields: fields.map(nameOf),
        sentNames: sentNamesOf(fields),
        policy: policyOf({ types, sources, installations }),
      }),
  ),
  list: call(leadRpc.listSubscriptions, { workspace, ...pages }),
  update: command(
    {
      ...namedSubscription,
      url: {
        ...url,
        description:
          'the destination; another scheme, host or port removes the headers, and `droppedHeaders` names them',
      },
      name: changedName,
      field,
      ...policy,
      header: { ...header, description: 'as for create; `name` alone keeps its value, an empty text removes all' },
      status,
      ...changedLimits,
    },
    ({ leads }, { workspaceId: _, mappedFields: fields, headers, types, sources, installations, ...given }) =>
      leads.updateSubscription({
        ...given,
        mappedFields: fields && { names: fields.map(nameOf) },
        sentNames: fields && { names: sentNamesOf(fields) },
        policy: policyOf({ types, sources, installations }),
        headers: changedHeaders(headers),
      }),
  ),
  delete: deletion(leadRpc.deleteSubscription, namedSubscription),
  rotate: call(leadRpc.rotateSubscriptionSecret, { ...namedSubscription, overlap }),
  activate: call(leadRpc.activateSubscriptionSecret, { ...namedSubscription, secret: secretOf('subscriptions') }),
}

const nameOf = (field: string) => field.split('=')[0] ?? ''

/** Returns the names under which fields are sent: `email=mail` is the field `email` as `mail`. */
const sentNamesOf = (fields: string[]) =>
  Object.fromEntries(fields.filter((field) => field.includes('=')).map((field) => field.split('=')))

/** Returns the policy that the flags give. One flag replaces the whole policy. */
const policyOf = (given: Partial<Record<'types' | 'sources' | 'installations', string[]>>) =>
  Object.values(given).some((values) => values !== undefined) ? given : undefined

const event = many(text(`an event to send; repeatable: ${feedEventTypes.join(', ')}`, 'eventTypes'))

export const hooks: Group = {
  create: call(hookRpc.createHook, { workspace, url: must(url), name, event: must(event), header, ...limits }),
  list: call(hookRpc.listHooks, { workspace, ...pages }),
  update: command(
    {
      ...namedHook,
      url: { ...url, description: 'the destination; as for `subscriptions update`' },
      name: changedName,
      event,
      header: { ...header, description: 'as for `subscriptions update`' },
      status,
      ...changedLimits,
    },
    ({ hooks }, { workspaceId: _, eventTypes: types, headers, ...given }) =>
      hooks.updateHook({ ...given, eventTypes: types && { types }, headers: changedHeaders(headers) }),
  ),
  delete: deletion(hookRpc.deleteHook, namedHook),
  rotate: call(hookRpc.rotateHookSecret, { ...namedHook, overlap }),
  activate: call(hookRpc.activateHookSecret, { ...namedHook, secret: secretOf('hooks') }),
}
