import { leadEventTypes } from '../../contract/event-kinds.ts'
import { command, type Group } from '../command.ts'
import { oneOf } from '../usage.ts'
import { deletion } from './deletion.ts'
import {
  destinationUrl,
  header,
  limitsOf,
  namedSubscription as named,
  notFound,
  pageFlags,
  rate,
  statuses,
  toHeader,
} from './destination-flags.ts'
import { workspace } from './workspace-flag.ts'

const field = {
  type: 'string',
  field: 'mappedFields',
  multiple: true,
  description: 'a field of the lead to send; `email=mail` sends it as `mail`; repeatable',
} as const
/** Flags of what is sent by itself. */
const policy = {
  event: {
    type: 'string',
    multiple: true,
    field: 'types',
    description: `an event to send: ${leadEventTypes.join(', ')}`,
  },
  source: { type: 'string', multiple: true, description: 'only leads from pre-chat-form, offline-form or services' },
  installation: { type: 'string', multiple: true, description: 'only leads of the installation with this site key' },
} as const

export const subscriptions: Group = {
  create: command({
    summary: 'Create a subscription; its secret is shown only now',
    flags: {
      workspace,
      url: { ...destinationUrl, required: true },
      field,
      header,
      automatic: { type: 'boolean', description: 'send every captured lead automatically' },
      ...policy,
      rate,
      'not-found': notFound,
    },
    run: (
      { leads },
      { workspace, url, field = [], header = [], automatic = false, rate, 'not-found': notFound, ...chosen },
    ) =>
      leads.createSubscription({
        workspaceId: workspace,
        destinationUrl: url,
        mappedFields: field.map(nameOf),
        sentNames: sentNamesOf(field),
        headers: header.map(toHeader),
        automatic,
        policy: policyOf(chosen),
        ...limitsOf(rate, notFound),
      }),
  }),
  list: command({
    summary: 'List the subscriptions of a workspace, newest first',
    flags: { workspace, ...pageFlags },
    run: ({ leads }, { workspace: workspaceId, limit, page = '' }) =>
      leads.listSubscriptions({ workspaceId, limit: limit === undefined ? undefined : Number(limit), pageToken: page }),
  }),
  update: command({
    summary: 'Change a subscription; given fields replace the present ones',
    flags: {
      ...named,
      url: {
        ...destinationUrl,
        description:
          'the destination; another scheme, host or port removes the headers, and `droppedHeaders` names them',
      },
      field,
      ...policy,
      header: { ...header, description: 'as for create; `name` alone keeps its value, an empty text removes all' },
      status: { type: 'string', description: 'enabled or disabled' },
      rate: { ...rate, description: 'requests per second, at most; 0 for no limit' },
      'not-found': notFound,
    },
    run: ({ leads }, { subscription, url, field, header, status, rate, 'not-found': notFound, ...chosen }) =>
      leads.updateSubscription({
        subscriptionId: subscription,
        destinationUrl: url,
        mappedFields: field && { names: field.map(nameOf) },
        sentNames: field && { names: sentNamesOf(field) },
        policy: policyOf(chosen),
        headers: header && { headers: header.filter((text) => text !== '').map(toHeader) },
        status: status === undefined ? undefined : oneOf('status', status, statuses),
        ...limitsOf(rate, notFound),
      }),
  }),
  delete: deletion({
    what: 'a subscription with its deliveries',
    flags: named,
    run: ({ leads }, { subscription }) => leads.deleteSubscription({ subscriptionId: subscription }),
  }),
  rotate: command({
    summary: 'Create a new secret, shown only now; the old one signs until `activate` or the end of the overlap',
    flags: { ...named, overlap: { type: 'string', description: 'seconds; default 24 hours' } },
    run: ({ leads }, { subscription, overlap }) =>
      leads.rotateSubscriptionSecret({
        subscriptionId: subscription,
        overlapSeconds: overlap === undefined ? undefined : Number(overlap),
      }),
  }),
  activate: command({
    summary: 'Let a rotated secret sign `X-Service-Webhook-Signature`',
    flags: {
      ...named,
      secret: { type: 'string', required: true, description: 'the secret’s id, from `subscriptions list`' },
    },
    run: ({ leads }, { subscription, secret }) =>
      leads.activateSubscriptionSecret({ subscriptionId: subscription, secretId: secret }),
  }),
}

const nameOf = (field: string) => field.split('=')[0] ?? ''

/** Returns the names under which fields are sent: `email=mail` is the field `email` as `mail`. */
const sentNamesOf = (fields: string[]) =>
  Object.fromEntries(fields.filter((field) => field.includes('=')).map((field) => field.split('=')))

/** Returns the policy that the flags give. One flag replaces the whole policy. */
const policyOf = (flags: Partial<Record<keyof typeof policy, string[] | undefined>>) =>
  Object.values(flags).some((values) => values !== undefined)
    ? { types: flags.event ?? [], sources: flags.source ?? [], installations: flags.installation ?? [] }
    : undefined
