import type { FieldIssue } from '../../contract/errors.ts'
import { field, line, url } from '../rules.ts'
import type { ConsentPolicy } from './model.ts'

/** URL and version belong together, and a required policy has both. */
export function consentPolicyIssues(path: string, policy: ConsentPolicy | undefined): (FieldIssue | undefined)[] {
  if (!policy) return []
  const { required, policyUrl, policyVersion } = policy
  if (!required && policyUrl === undefined && policyVersion === undefined) return []
  return [
    policyUrl === undefined
      ? { path: `${path}/policyUrl`, rule: 'required' }
      : field(`${path}/policyUrl`, policyUrl, url('https')),
    policyVersion === undefined
      ? { path: `${path}/policyVersion`, rule: 'required' }
      : field(`${path}/policyVersion`, policyVersion, line(1, 64)),
  ]
}
