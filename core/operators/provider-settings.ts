import { SettingError } from '../../platform/settings/settings.ts'
import type { CoreConfig } from '../config.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'

export interface ProviderSettings {
  issuer: string
  clientId: string
  /** Empty for a public client. */
  clientSecret: string
  /** Requested at the provider. */
  scope: string
  /** Empty if a claim names it. */
  workspaceId: string
  workspaceClaim: string
  rolesClaim: string
  /** Scopes of each role. If empty, the claim has scopes. `*` is every scope. */
  roles: ReadonlyMap<string, string[]>
}

/** Parses `agent=messages:read messages:write;admin=*`. Errors: `SettingError` with the wrong entry. */
function parseRoles(text: string, known: ReadonlySet<string>): Map<string, string[]> {
  const entries = text.split(';').filter((entry) => entry.trim() !== '')
  return new Map(
    entries.map((entry) => {
      const [role = '', scopes = ''] = entry.split('=').map((part) => part.trim())
      const list = scopes.split(' ').filter(Boolean)
      const isValid = role !== '' && list.length > 0 && list.every((scope) => scope === '*' || known.has(scope))
      if (!isValid)
        throw new SettingError(`OIDC_ROLES: ${JSON.stringify(entry)} must be a role, "=" and scopes of operators`)
      return [role, list]
    }),
  )
}

export const providerSettings = (config: CoreConfig): ProviderSettings => ({
  issuer: config.OIDC_ISSUER,
  clientId: config.OIDC_CLIENT_ID,
  clientSecret: config.OIDC_CLIENT_SECRET,
  scope: config.OIDC_SCOPE,
  workspaceId: config.OIDC_WORKSPACE,
  workspaceClaim: config.OIDC_WORKSPACE_CLAIM,
  rolesClaim: config.OIDC_ROLES_CLAIM,
  roles: parseRoles(config.OIDC_ROLES, operatorScopes),
})
