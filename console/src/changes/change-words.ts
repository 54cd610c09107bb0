import type { PolicyChange } from '#proto/workspace/v1/workspace_pb.js'

const actions: Record<string, string> = {
  UpdateWorkspace: 'Workspace changed',
  CreateInstallation: 'Website created',
  UpdateInstallation: 'Website changed',
  SetLogo: 'Logo of a website changed',
  RotateIdentitySecret: 'Identity secret rotated',
  SetConnectionStatus: 'Connection status changed',
  AddSuppressions: 'People added to do not contact',
  RemoveSuppressions: 'People removed from do not contact',
  BanVisitor: 'Visitor banned',
  UnbanVisitor: 'Ban lifted',
  DeleteInstallation: 'Website deleted',
  DeleteConnection: 'Connection deleted',
  DeleteSubscription: 'Destination deleted',
}

export const actionText = (action: string) => actions[action] ?? action

/** Returns the settings of a change in one line, for example `capabilities.typing: false`. */
export const settingsText = ({ settings }: Pick<PolicyChange, 'settings'>) =>
  settings.map(({ name, value }) => `${name}: ${value}`).join(', ')
