import { access, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, type StartedProcess, startProgram } from '../../test/support/processes.ts'
import { scratchFolder } from '../measure.ts'

const module = '/usr/lib/nginx/modules/ngx_nchan_module.so'

/** Starts nginx with nchan, for this number of connections. Throws if it is not installed. */
export async function startNchan(connections: number): Promise<{ server: StartedProcess; port: number }> {
  await access(module).catch(() => {
    throw new Error('the Debian packages nginx and libnginx-mod-nchan are not installed')
  })
  const folder = await scratchFolder('nchan')
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  await writeFile(file, configuration(folder, port, connections))
  const args = ['-p', folder, '-e', join(folder, 'error.log'), '-c', file]
  return { server: await startProgram('nginx', args, port), port }
}

const configuration = (folder: string, port: number, files: number) => `
load_module ${module};
daemon off;
master_process off;
worker_processes 1;
worker_rlimit_nofile ${files};
pid ${folder}/nginx.pid;
error_log ${folder}/error.log crit;
events { worker_connections ${files}; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  client_body_buffer_size 32k;
  keepalive_requests 1000000;
  nchan_shared_memory_size 512m;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location ~ ^/sub/(.+)$ {
      nchan_subscriber eventsource;
      nchan_channel_id $1;
      nchan_subscriber_first_message newest;
      nchan_eventsource_ping_interval 15;
    }
    location ~ ^/pub/(.+)$ {
      nchan_publisher http;
      nchan_channel_id $1;
      nchan_message_buffer_length 400;
      nchan_message_timeout 1h;
    }
  }
}
`
