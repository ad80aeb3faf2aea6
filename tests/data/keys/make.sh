#!/bin/sh
# Makes the keys of this folder anew (openssl 3 and a JDK's keytool): one RSA key in every form, and others.
set -e
cd "$(dirname "$0")"
rm -f ./*.pem ./*.p12 ./*.jks ./*.jceks
openssl genrsa -out rsa.pem 2048
openssl rsa -in rsa.pem -pubout -out rsa-public.pem
openssl pkcs8 -topk8 -in rsa.pem -passout pass:open-sesame -out rsa-locked.pem
openssl rsa -in rsa.pem -traditional -out rsa-traditional.pem
openssl req -new -x509 -key rsa.pem -subj /CN=signer -days 36500 -out rsa-certificate.pem
openssl ecparam -name prime256v1 -genkey -noout -out ec.pem
openssl ec -in ec.pem -pubout -out ec-public.pem
openssl genpkey -algorithm ed25519 -out ed25519.pem
openssl pkcs12 -export -inkey rsa.pem -in rsa-certificate.pem -name mine -passout pass:open-sesame -out rsa.p12
openssl pkcs12 -export -legacy -inkey rsa.pem -in rsa-certificate.pem -name mine -passout pass:open-sesame -out rsa-old.p12
openssl pkcs12 -export -nokeys -in rsa-certificate.pem -passout pass:open-sesame -out no-key.p12
from="-srckeystore rsa.p12 -srcstoretype pkcs12 -srcstorepass open-sesame -srcalias mine"
keytool -importkeystore $from -destkeystore rsa.jks -deststoretype jks -deststorepass open-sesame
keytool -importkeystore $from -destkeystore rsa.jceks -deststoretype jceks -deststorepass open-sesame
keytool -importkeystore $from -destkeystore new.jks -deststoretype pkcs12 -deststorepass open-sesame
# A certificate first, then the key under a password of its own.
keytool -importcert -noprompt -alias authority -file rsa-certificate.pem -keystore several.jks -storetype jks -storepass open-sesame
keytool -importkeystore $from -destalias second -destkeystore several.jks -deststoretype jks -deststorepass open-sesame -destkeypass of-its-own
