import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import type { Role } from './model.ts'

const ownersScopes = ['workspaces:write', 'subscriptions:write', 'visitors:export', 'visitors:erase', 'messages:redact']

export const scopesOfRole: Record<Role, string[]> = {
  owner: [...operatorScopes],
  operator: [...operatorScopes].filter((scope) => !ownersScopes.includes(scope)),
  viewer: [...operatorScopes].filter((scope) => scope.endsWith(':read')),
}
