import process from 'node:process'

// Module that is preloaded into every process that a test starts. It ends the process when its
// standard input closes, so that a killed test run leaves no processes behind.
process.stdin.on('end', () => process.kill(process.pid, 'SIGKILL'))
process.stdin.on('error', () => {})
process.stdin.resume().unref()
