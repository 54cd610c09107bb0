import { timestampDate } from '@bufbuild/protobuf/wkt'
import { command } from '../command.ts'
import { UsageError } from '../usage.ts'

export const consoleLink = command({
  summary: 'Create a link that signs one operator in to the console, once, within ten minutes',
  flags: {
    gateway: { type: 'string', description: 'URL of the gateway; default: of the service on this machine' },
    workspace: {
      type: 'string',
      description: 'the workspace’s id; default: from the token, or of the service on this machine',
    },
    operator: { type: 'string', description: 'id of the operator in records; default: the subject of the token' },
    owner: { type: 'boolean', description: 'for the first owner of the workspace, who then invites the others' },
    scope: { type: 'string', multiple: true, description: 'a scope, repeatable; default: all of the token’s' },
  },
  async run({ console }, { gateway, workspace, operator = '', owner = false, scope = [] }, demo) {
    const url = gateway ?? demo.gatewayUrl
    if (url === undefined) throw new UsageError('missing: --gateway')
    const answer = await console.createSignInLink({
      workspaceId: workspace ?? demo.workspaceId,
      operator,
      scopes: scope,
      owner,
    })
    return { link: signInLink(url, answer.secret), expiresAt: timestampDate(answer.expiresAt!).toISOString() }
  },
})

/** The secret is in the fragment, which browsers do not send to a server. */
const signInLink = (gatewayUrl: string, secret: string) => new URL(`/console/#sign-in=${secret}`, gatewayUrl).href
