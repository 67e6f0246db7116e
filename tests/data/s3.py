"""Requests at the S3 server of a test: s3.py PORT KEY SECRET REQUEST. Lines of standard output are the result."""
import sys

import boto3

port, key, secret, request = sys.argv[1:]


def client(name):
    return boto3.client(
        name, endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1",
        aws_access_key_id=key, aws_secret_access_key=secret)


s3, iam = client("s3"), client("iam")
if request == "begin":
    # The first five requests need no key.
    policy = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}'
    s3.create_bucket(Bucket="bucket")
    iam.create_user(UserName="u")
    iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=policy)
    for _ in ("the test's own", "the workers'"):
        made = iam.create_access_key(UserName="u")["AccessKey"]
        print(made["AccessKeyId"], made["SecretAccessKey"])
elif request == "objects":
    for it in s3.list_objects_v2(Bucket="bucket").get("Contents", []):
        print(it["Key"])
elif request == "uploads":
    for it in s3.list_multipart_uploads(Bucket="bucket").get("Uploads", []):
        print(it["UploadId"])
elif request == "remove-bucket":
    for it in s3.list_objects_v2(Bucket="bucket").get("Contents", []):
        s3.delete_object(Bucket="bucket", Key=it["Key"])
    s3.delete_bucket(Bucket="bucket")
elif request.startswith("remove-key "):
    iam.delete_access_key(UserName="u", AccessKeyId=request.split()[1])
else:
    sys.exit(f"no request {request}")
