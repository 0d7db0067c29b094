"""Submits a spec, follows its job to the end, downloads a result: submit.py spec.json [job uuid]"""
import asyncio, json, os, shutil, sys, urllib.request, uuid, nats

async def main(spec, job):
    env, news, last, told = os.environ, asyncio.Queue(), 0, {"status": None}
    async def ask():  # for the last message, which comes in where later ones do
        await nc.publish(f"$JS.API.DIRECT.GET.STATUS.status.{token}.{job}", reply=inbox)
    async def hear(error):  # a refusal is said to nobody else
        if "permissions violation" in str(error): await news.put(error)
    nc = await nats.connect(env["NATS_URL"], user=env["NATS_USER"], password=env["NATS_PASSWORD"],
                            reconnected_cb=ask, error_cb=hear)
    token, inbox = env["ERRAND_WORKSPACE"].replace(".", "%2E"), nc.new_inbox()
    for subject in inbox, f"changes.{token}.{job}": await nc.subscribe(subject, cb=news.put)
    await nc.publish(f"jobs.submitted.{token}.{job}", json.dumps({"spec": spec}).encode(), reply=inbox)
    await ask()
    while told["status"] not in ("completed", "cancelled", "error"):
        message = await news.get()
        if isinstance(message, Exception): raise message
        said = message.data if not message.headers else b""  # only a receipt has no headers
        if b'"error":' in said and b"per subject" not in said: raise RuntimeError(said.decode())
        sequence = int((message.headers or {}).get("Nats-Sequence", 0))
        if sequence > last: last, told = sequence, json.loads(message.data)
        print(message.data.decode(), flush=True)
    url = f"{env['ERRAND_BASE_URL']}/apis/jobs/v2/workspaces/{env['ERRAND_WORKSPACE']}/jobs/{told['name']}"
    url, token = f"{url}/results/output_workdir/download", f"Bearer {env.get('ERRAND_TOKEN', '')}"
    answer = urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": token}))
    shutil.copyfileobj(answer, open("output_workdir.tar.gz", "wb"))

asyncio.run(main(json.load(open(sys.argv[1])), sys.argv[2] if sys.argv[2:] else str(uuid.uuid4())))
